// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/bpf"
	"twopath/compare"
	"twopath/internal/measure"
	"twopath/internal/nstest"
	"twopath/internal/packet"
	"twopath/xsk"
)

// These tests lose an exact number of packets at a known place on a real veth pair and find exactly that number in
// exactly that row, with nothing unexplained and no cross-check failing.

const (
	testRun  = 0x74700007
	testPort = 9000
)

// trial is one run between the two ends of a pair.
type trial struct {
	t         *testing.T
	p         *nstest.Pair
	sut, peer *measure.Reader
	streams   *measure.Streams
	to        map[string]uint64 // what sockets, programs and the reader counted
	from      map[string]uint64 // what the sender's socket counted
	in        measure.Input
	mayFail   string // beginning of a check that must fail, for that is what is forced; "-" is none
}

func newTrial(t *testing.T, o nstest.Options, arm measure.Arm) *trial {
	t.Helper()
	r := &trial{t: t, p: nstest.NewPair(t, o), to: map[string]uint64{}, from: map[string]uint64{}, mayFail: "-"}
	r.in = measure.Input{Arm: arm, Sender: measure.SendLive}
	for _, e := range []struct {
		end *nstest.End
		to  **measure.Reader
	}{{r.p.SUT, &r.sut}, {r.p.Peer, &r.peer}} {
		e.end.Do(t, func() {
			var err error
			if *e.to, err = measure.NewReader(measure.ReaderOptions{Device: e.end.Name}); err != nil {
				t.Fatal(err)
			}
		})
		t.Cleanup(func() { (*e.to).Close() })
	}
	var err error
	if r.streams, err = measure.NewStreams(1, measure.MinWindow); err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"received", "short", "corrupt_ip", "corrupt_udp", "corrupt_payload", "foreign"} {
		r.to["reader."+n] = 0
	}
	return r
}

func (r *trial) snapshots() (sut, peer measure.Snapshot) {
	r.t.Helper()
	read := func(e *nstest.End, from *measure.Reader) (s measure.Snapshot) {
		e.Do(r.t, func() {
			var err error
			if s, err = from.Read(); err != nil {
				r.t.Fatal(err)
			}
		})
		return s
	}
	return read(r.p.SUT, r.sut), read(r.p.Peer, r.peer)
}

// options aims a generator at the SUT.
func (r *trial) options(count uint64) bpf.GeneratorOptions {
	return bpf.GeneratorOptions{IfIndex: r.p.Peer.Index, RunID: testRun, SrcMAC: r.p.Peer.MAC, DstMAC: r.p.SUT.MAC,
		Src: r.p.Peer.IP4, Dst: r.p.SUT.IP4, DstPort: testPort, Count: count, Rate: 200_000}
}

// prepare loads a generator of live frames. The function it gives sends, and says how many numbers were used and how
// many frames sent again on purpose.
func (r *trial) prepare(o bpf.GeneratorOptions) func() (sent, injected uint64) {
	var g *bpf.Generator
	r.p.Peer.Do(r.t, func() {
		var err error
		if g, err = bpf.NewGenerator(o); err != nil {
			r.t.Fatal(err)
		}
	})
	r.t.Cleanup(func() { g.Close() })
	return func() (sent, injected uint64) {
		r.p.Peer.Do(r.t, func() {
			pinThread(r.t, 0, runtime.NumCPU()-1)
			res, err := g.Run()
			if err != nil {
				r.t.Fatal(err)
			}
			sent, injected = res.Sent-res.Duplicates, res.Duplicates
		})
		return sent, injected
	}
}

// run snapshots, sends, waits until nothing moves any more, lets the reader read, snapshots, and does the account.
func (r *trial) run(send func() (sent, injected uint64), read func()) measure.Result {
	r.t.Helper()
	sut0, peer0 := r.snapshots()
	r.in.Sent, r.in.Injected = send()
	last, _ := r.snapshots()
	for range 200 {
		time.Sleep(10 * time.Millisecond)
		now, _ := r.snapshots()
		if now.Counters["link.rx_packets"] == last.Counters["link.rx_packets"] {
			break
		}
		last = now
	}
	read()
	sut1, peer1 := r.snapshots()
	tally := r.streams.Tally()
	r.in.Unique = tally.Unique
	r.in.From = measure.Delta(peer0, peer1).Counters
	r.in.To = measure.Delta(sut0, sut1).Counters
	// The rest of the host may drop from its backlog while this test runs; it is no part of the pair.
	r.in.To["softnet.dropped"] = 0
	maps.Copy(r.in.To, r.to)
	maps.Copy(r.in.From, r.from)
	r.in.To["reader.duplicate"], r.in.To["reader.late"] = tally.Duplicate, tally.Late
	return measure.Build(r.in)
}

// want checks an account to the packet. Arguments are ids and numbers in turn.
func (r *trial) want(got measure.Result, grade compare.Grade, rows ...any) {
	r.t.Helper()
	var want, have []string
	sum := uint64(0)
	for i := 0; i < len(rows); i += 2 {
		n := uint64(rows[i+1].(int))
		if n > 0 {
			want = append(want, fmt.Sprintf("%s %d %s", rows[i], n, grade))
		}
		sum += n
	}
	for _, row := range got.Rows {
		have = append(have, fmt.Sprintf("%s %d %s", row.At, row.Packets, row.Grade))
	}
	failed := got.Unexplained != 0 || got.OwnExcess != 0 || strings.Join(want, ", ") != strings.Join(have, ", ") || got.Lost != sum
	for _, c := range got.Checks {
		if !c.OK && !strings.HasPrefix(c.What, r.mayFail) {
			failed = true
			r.t.Errorf("check failed: %s: %d and %d", c.What, c.A, c.B)
		}
	}
	if failed {
		r.t.Errorf("sent %d, unique %d, lost %d, unexplained %d, own excess %d\nrows %v\nwant %v", r.in.Sent, r.in.Unique, got.Lost,
			got.Unexplained, got.OwnExcess, have, want)
		for side, m := range map[string]map[string]uint64{"from": r.in.From, "to": r.in.To} {
			for name, v := range m {
				if v != 0 {
					r.t.Logf("%s %s %d", side, name, v)
				}
			}
		}
	}
}

// take accounts one payload of the run.
func (r *trial) take(payload []byte) {
	if len(payload) < packet.StampLen {
		r.to["reader.short"]++
		return
	}
	s := packet.ParseStamp(payload)
	if s.Run != testRun {
		r.to["reader.foreign"]++
		return
	}
	r.to["reader.received"]++
	r.streams.Add(uint64(s.Stream)<<packet.NumberBits | s.Number)
}

// udp opens the reader's socket in the SUT's namespace; rcvbuf is as the kernel will have it (it doubles requests).
func (r *trial) udp(rcvbuf int, gro bool) int {
	r.t.Helper()
	fd := -1
	r.p.SUT.Do(r.t, func() {
		var err error
		if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
			r.t.Fatal(err)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rcvbuf/2); err != nil {
			r.t.Fatal(err)
		}
		if gro {
			if err := unix.SetsockoptInt(fd, unix.IPPROTO_UDP, unix.UDP_GRO, 1); err != nil {
				r.t.Fatal(err)
			}
		}
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: testPort}); err != nil {
			r.t.Fatal(err)
		}
	})
	r.t.Cleanup(func() { unix.Close(fd) })
	r.to["sock.queued"] = 0
	return fd
}

// readUDP empties the socket; with account false it only counts what is queued, as a reader that stopped would leave it.
func (r *trial) readUDP(fd int, account bool) {
	buf, oob := make([]byte, 1<<16), make([]byte, 256)
	for {
		n, oobn, _, _, err := unix.Recvmsg(fd, buf, oob, 0)
		if err == unix.EAGAIN {
			break
		}
		if err != nil {
			r.t.Fatal(err)
		}
		if !account {
			r.to["sock.queued"]++
			continue
		}
		segment := n
		msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
		if err != nil {
			r.t.Fatal(err)
		}
		for _, m := range msgs {
			if m.Header.Level == unix.IPPROTO_UDP && m.Header.Type == unix.UDP_GRO {
				segment = int(binary.NativeEndian.Uint16(m.Data))
			}
		}
		for b := buf[:n]; len(b) > 0; b = b[min(segment, len(b)):] {
			r.take(b[:min(segment, len(b))])
		}
	}
	r.to["sock.drops"] = r.socketDrops()
}

// socketDrops reads sk_drops of the test's socket, the number SO_MEMINFO gives, from the last column of net/udp.
func (r *trial) socketDrops() (drops uint64) {
	r.p.SUT.Do(r.t, func() {
		b, err := os.ReadFile("/proc/thread-self/net/udp")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) > 2 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", testPort)) {
				n, err := strconv.ParseUint(f[len(f)-1], 10, 64)
				if err != nil {
					r.t.Fatal(err)
				}
				drops += n
			}
		}
	})
	return drops
}

// xsk attaches the redirect program to the SUT and, if o is not nil, opens a socket on its queue.
func (r *trial) xsk(o *xsk.Options, mode bpf.Mode) (*bpf.Redirect, *xsk.Socket) {
	r.t.Helper()
	var prog *bpf.Redirect
	var sock *xsk.Socket
	r.in.Generic = mode == bpf.Generic
	r.p.SUT.Do(r.t, func() {
		var err error
		prog, err = bpf.NewRedirect(bpf.RedirectOptions{Match: bpf.FlowMatch{Family: 4, DstPort: testPort, AnyRun: true, DstMAC: r.p.SUT.MAC}})
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { prog.Close() })
		if o != nil {
			o.Device, o.TxRing, o.Bind = r.p.SUT.Name, xsk.None, xsk.Copy
			if sock, err = xsk.Open(*o); err != nil {
				r.t.Fatal(err)
			}
			r.t.Cleanup(func() { sock.Close() })
			if err := prog.SetSocket(o.Queue, sock.FD()); err != nil {
				r.t.Fatal(err)
			}
		}
		link, err := bpf.Attach(prog.Program(), r.p.SUT.Index, mode)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { link.Close() })
	})
	return prog, sock
}

// readXSK merges what program and socket counted, and reads all frames if account is set.
func (r *trial) readXSK(prog *bpf.Redirect, s *xsk.Socket, account bool) {
	reasons, queues, err := prog.Counters()
	if err != nil {
		r.t.Fatal(err)
	}
	for name, n := range reasons {
		r.to["redirect."+name] = n
	}
	r.to["redirect.other_queue"] = 0
	if s == nil {
		for _, n := range []string{"rx_dropped", "rx_ring_full", "rx_fill_ring_empty_descs", "queued"} {
			r.to["xsk."+n] = 0
		}
		return
	}
	for q, n := range queues {
		if q != 0 { // the socket's
			r.to["redirect.other_queue"] += n
		}
	}
	descs := make([]xsk.Desc, 64)
	verify := packet.Verifier{DstPort: testPort, Checksum: true}
	for account {
		n := s.Receive(descs)
		if n == 0 {
			break
		}
		for _, d := range descs[:n] {
			payload, verdict := verify.Frame(s.Frame(d))
			switch verdict {
			case packet.OK:
				r.take(payload)
			case packet.CorruptUDP:
				r.to["reader.corrupt_udp"]++
			case packet.CorruptIP:
				r.to["reader.corrupt_ip"]++
			default:
				r.t.Errorf("verdict %v", verdict)
			}
		}
		s.Release(descs[:n])
	}
	r.to["xsk.queued"] = uint64(s.Queued())
	st, err := s.Stats()
	if err != nil {
		r.t.Fatal(err)
	}
	maps.Copy(r.to, map[string]uint64{"xsk.rx_dropped": st.RxDropped, "xsk.rx_ring_full": st.RxRingFull,
		"xsk.rx_fill_ring_empty_descs": st.RxFillRingEmptyDescs})
}
