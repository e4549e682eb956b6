// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/agent"
	"twopath/internal/dns"
	"twopath/internal/measure"
)

// dnsperfPart is the peer of dns when the program dnsperf asks: real sockets, a real kernel, and its own idea of a reply.
type dnsperfPart struct {
	p       agent.Prepare
	path    string
	queries string
	list    int // queries in it
	reader  *measure.Reader
	ctx     context.Context
	cancel  context.CancelFunc

	mu  sync.Mutex // guards got
	got dns.Perf
}

func newDnsperf(p agent.Prepare) (_ *dnsperfPart, got agent.Prepared, err error) {
	l := p.Generate
	if l == nil || len(p.CPUs) == 0 || p.DNS == nil {
		return nil, got, errors.New("dnsperf: no load, CPUs or zone given")
	}
	d := &dnsperfPart{p: p}
	if d.path, err = exec.LookPath("dnsperf"); err != nil {
		return nil, got, fmt.Errorf("dnsperf is not installed here: apt-get install dnsperf, or leave out --driver dnsperf")
	}
	_, list, err := zoneAndQueries(p.DNS)
	if err != nil {
		return nil, got, err
	}
	d.queries, d.list = dns.FormatQueries(list), len(list)
	if d.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	got.Effective = map[string]any{"method": "dnsperf"}
	return d, got, nil
}

// arguments of dnsperf. A reply is waited for as long as the kernel may keep it: one that comes after the program has given
// it up would be lost in no place.
func (d *dnsperfPart) arguments() []string {
	l, n := d.p.Generate, d.p.DNS
	a := []string{"-s", d.p.Flow.Dst.String(), "-p", strconv.Itoa(int(d.p.Flow.DstPort)), "-a", d.p.Flow.Src.String(), "-t", "5",
		"-c", strconv.Itoa(max(n.Clients, 1)), "-T", "1", "-q", strconv.Itoa(max(n.Outstanding, 1))}
	if l.Rate > 0 {
		a = append(a, "-Q", strconv.Itoa(max(int(math.Round(l.Rate)), 1)))
	}
	if n.EDNS {
		a = append(a, "-e")
	}
	if l.Count > 0 {
		return append(a, "-n", strconv.FormatUint(max(l.Count/uint64(d.list), 1), 10))
	}
	return append(a, "-l", strconv.Itoa(max(int(math.Ceil(l.Seconds)), 1)))
}

func (d *dnsperfPart) Start() error { return nil }

func (d *dnsperfPart) Counters() (map[string]uint64, error) {
	s, err := d.reader.Read()
	return s.Counters, err
}

func (d *dnsperfPart) Live() agent.Live {
	d.mu.Lock()
	defer d.mu.Unlock()
	return agent.Live{Sent: d.got.Sent, Received: d.got.Completed}
}

func (d *dnsperfPart) Stop() { d.cancel() }

// Run lets dnsperf ask, on the peer's first CPU, and reads what it says at its end.
func (d *dnsperfPart) Run() (agent.Generated, error) {
	var t agent.Generated
	var out, problems bytes.Buffer
	list, err := memoryFile("queries", d.queries)
	if err != nil {
		return t, fmt.Errorf("dnsperf: %w", err)
	}
	defer list.Close()
	c := exec.CommandContext(d.ctx, d.path, append(d.arguments(), "-d", "/dev/fd/3")...)
	c.ExtraFiles = []*os.File{list} // descriptor 3
	c.Stdout, c.Stderr = &out, &problems
	c.Env = []string{"LC_ALL=C"}
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}    // of the thread below, which waits for it
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGINT) } // it prints its statistics then
	c.WaitDelay = 10 * time.Second
	began := measure.Monotonic()
	err = onCPU(d.p.CPUs[0], func() error { // the child inherits the thread's CPU
		if err := c.Start(); err != nil {
			return err
		}
		return c.Wait()
	})
	if err != nil && d.ctx.Err() == nil {
		return t, fmt.Errorf("dnsperf: %w: %s", err, bytes.TrimSpace(problems.Bytes()))
	}
	got, err := dns.ParsePerf(&out)
	if err != nil {
		return t, fmt.Errorf("dnsperf: %w", err)
	}
	d.mu.Lock()
	d.got = got
	d.mu.Unlock()
	t.Sent, t.Seconds, t.Stopped, t.Runs = got.Sent, got.Seconds, d.ctx.Err() != nil, 1
	t.StartNS, t.EndNS = began, measure.Monotonic()
	t.PerStream = []uint64{got.Sent}
	return t, nil
}

// memoryFile is a file without a name, which goes away with the last who holds it: dnsperf reads its list again and again.
func memoryFile(name, text string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := f.WriteString(text); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Finish returns what dnsperf counted. It knows no distribution of the latency.
func (d *dnsperfPart) Finish() (agent.Received, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := agent.Received{Received: d.got.Completed, Unique: d.got.Completed, Counters: map[string]uint64{"dnsperf.sent": d.got.Sent,
		"dnsperf.completed": d.got.Completed, "dnsperf.lost": d.got.Lost, "dnsperf.interrupted": d.got.Interrupted}}
	for name, n := range d.got.Codes {
		t.Counters["reply."+name] = n
	}
	ns := func(s float64) uint64 { return uint64(math.Round(s * 1e9)) }
	if d.got.Completed > 0 {
		t.Latency = &agent.Latency{Count: d.got.Completed, SumNS: ns(d.got.Average * float64(d.got.Completed)), MinNS: ns(d.got.Min), MaxNS: ns(d.got.Max)}
	}
	return t, nil
}

func (d *dnsperfPart) Close() error {
	d.cancel()
	return d.reader.Close()
}
