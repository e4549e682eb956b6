// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// pairOptions aims a generator at the SUT's end of a pair.
func pairOptions(p *nstest.Pair, f testFrame) GeneratorOptions {
	return GeneratorOptions{IfIndex: p.Peer.Index, RunID: testRunID, SrcMAC: p.Peer.MAC, DstMAC: p.SUT.MAC, Src: f.src, Dst: f.dst}
}

// generate runs a generator in the peer's namespace on the last CPU.
func generate(t *testing.T, p *nstest.Pair, o GeneratorOptions, during ...func(*Generator)) (res GeneratorResult) {
	t.Helper()
	p.Peer.Do(t, func() {
		pin(t, runtime.NumCPU()-1)
		g, err := NewGenerator(o)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, fn := range during {
			wg.Go(func() { fn(g) })
		}
		if res, err = g.Run(); err != nil {
			t.Fatal(err)
		}
	})
	if res.Failed != 0 {
		t.Errorf("%d frames could not be shaped", res.Failed)
	}
	return res
}

// pin keeps the calling thread, which must be locked, on one CPU.
func pin(t testing.TB, cpu int) {
	t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		t.Logf("not pinned to CPU %d: %v", cpu, err)
	}
}

// attach loads nothing: it attaches p natively to the SUT's end for the rest of the test.
func attachSUT(t *testing.T, p *nstest.Pair, prog program) {
	t.Helper()
	p.SUT.Do(t, func() {
		l, err := Attach(prog.Program(), p.SUT.Index, Native)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	})
}

// xmit returns what the peer's device says it sent, and what of that did not fit the other end's ring.
func xmit(t *testing.T, p *nstest.Pair) (frames, errs uint64) {
	t.Helper()
	p.Peer.Do(t, func() {
		e, err := ethtool.NewEthtool()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		stats, err := e.Stats(p.Peer.Name)
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range stats {
			switch {
			case strings.HasSuffix(name, "_xdp_xmit_errors"):
				errs += n
			case strings.HasSuffix(name, "_xdp_xmit"):
				frames += n
			}
		}
	})
	return frames, errs
}

// udpCounters reads a line of /proc/net/snmp or snmp6 in the namespace of an end.
func udpCounters(t *testing.T, e *nstest.End, v6 bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	e.Do(t, func() {
		file := "/proc/thread-self/net/snmp"
		if v6 {
			file += "6"
		}
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			switch {
			case v6 && len(f) == 2:
				out[strings.TrimPrefix(f[0], "Udp6")] = f[1]
			case !v6 && f[0] == "Udp:" && names == nil:
				names = f
			case !v6 && f[0] == "Udp:":
				for i, n := range f {
					out[names[i]] = n
				}
			}
		}
	})
	return out
}

// capture reads whole frames of the run's port from an AF_PACKET socket on an end until n came or nothing more does.
type capture struct {
	fd     int
	frames [][]byte
	done   chan struct{}
}

func newCapture(t *testing.T, e *nstest.End, ifIndex, n int) *capture {
	t.Helper()
	return newCaptureOf(t, e, ifIndex, n, isRun)
}

// newCaptureOf is newCapture of the frames for which ours is true.
func newCaptureOf(t *testing.T, e *nstest.End, ifIndex, n int, ours func([]byte) bool) *capture {
	t.Helper()
	c := &capture{done: make(chan struct{})}
	e.Do(t, func() {
		proto := int(binary.NativeEndian.Uint16([]byte{0, unix.ETH_P_ALL}))
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			t.Fatal(err)
		}
		c.fd = fd
		for _, err := range []error{
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: ifIndex}),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	go func() {
		defer close(c.done)
		defer unix.Close(c.fd)
		buf := make([]byte, 65536)
		idle := 0
		for len(c.frames) < n && idle < 20 {
			got, _, err := unix.Recvfrom(c.fd, buf, 0)
			switch {
			case errors.Is(err, unix.EAGAIN):
				idle++
			case errors.Is(err, unix.EINTR):
			case err != nil:
				return
			case ours(buf[:got]):
				idle = 0
				c.frames = append(c.frames, bytes.Clone(buf[:got]))
			}
		}
	}()
	return c
}

func (c *capture) wait() [][]byte { <-c.done; return c.frames }

// isRun keeps UDP only: neighbour discovery may be about.
func isRun(b []byte) bool {
	return len(b) > 42 && (b[12] == 8 && b[13] == 0 && b[23] == 17 || b[12] == 0x86 && b[13] == 0xdd && b[20] == 17)
}

// udpReader receives datagrams for the run's port with the kernel's own checks, n of them or until nothing more comes.
type udpReader struct {
	fd       int
	payloads [][]byte
	done     chan struct{}
}

func newUDPReader(t *testing.T, e *nstest.End, v6 bool, n int, gro bool) *udpReader {
	t.Helper()
	r := &udpReader{done: make(chan struct{})}
	e.Do(t, func() {
		// The kernel makes an IPv6 address its own in a work queue (addrconf_dad_work); until then it drops what comes for
		// it as InAddrErrors.
		eventually(t, "the IPv6 address is the end's own", func() bool {
			routes, err := netlink.RouteGet(e.IP6.AsSlice())
			return !v6 || err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL
		})
		family, addr := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: 9000})
		if v6 {
			family, addr = unix.AF_INET6, &unix.SockaddrInet6{Port: 9000}
		}
		fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		r.fd = fd
		for _, err := range []error{
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 256<<20),
			unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_GRO, int(flag(gro))),
			unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 200_000}),
			unix.Bind(fd, addr),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	go func() {
		defer close(r.done)
		defer unix.Close(r.fd)
		buf, oob := make([]byte, 65536), make([]byte, 64)
		idle := 0
		for len(r.payloads) < n && idle < 20 {
			got, oobn, _, _, err := unix.Recvmsg(r.fd, buf, oob, 0)
			switch {
			case errors.Is(err, unix.EAGAIN):
				idle++
				continue
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				return
			}
			idle = 0
			segment := got
			if msgs, err := unix.ParseSocketControlMessage(oob[:oobn]); err == nil {
				for _, m := range msgs {
					if m.Header.Level == unix.SOL_UDP && m.Header.Type == unix.UDP_GRO {
						segment = int(binary.NativeEndian.Uint16(m.Data))
					}
				}
			}
			for b := buf[:got]; len(b) > 0; b = b[min(segment, len(b)):] {
				r.payloads = append(r.payloads, bytes.Clone(b[:min(segment, len(b))]))
			}
		}
	}()
	return r
}

func (r *udpReader) wait() [][]byte { <-r.done; return r.payloads }

// checkPayload verifies stamp and pattern of a datagram and returns its number.
func checkPayload(b []byte) (uint64, error) {
	if len(b) < 18 {
		return 0, fmt.Errorf("%d bytes", len(b))
	}
	if run := binary.BigEndian.Uint32(b); run != testRunID {
		return 0, fmt.Errorf("run id %#x", run)
	}
	for i := 18; i < len(b); i++ {
		if b[i] != byte(i) {
			return 0, fmt.Errorf("byte %d of %d is %#x", i, len(b), b[i])
		}
	}
	return uint64(b[5])<<32 | uint64(binary.BigEndian.Uint32(b[6:])), nil
}

// eventually waits for what is on its way.
func eventually(t *testing.T, what string, fn func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !fn(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("not within 5 s: %s", what)
			return
		}
	}
}
