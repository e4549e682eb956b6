// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
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

// A descriptor of length 0 and one that runs over the end of its chunk: the kernel completes both and sends neither.
func TestForcedBadDescriptor(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	r.in.Sender = measure.SendXSK
	fd := r.udp(64<<20, false)
	var s *xsk.Socket
	r.p.Peer.Do(t, func() {
		var err error
		if s, err = xsk.Open(xsk.Options{Device: r.p.Peer.Name, RxRing: xsk.None, Bind: xsk.Copy}); err != nil {
			t.Fatal(err)
		}
	})
	defer s.Close()
	got := r.run(func() (uint64, uint64) {
		r.p.Peer.Do(t, func() { r.sendDescs(s, 300) })
		return 300, 0
	}, func() {
		st, err := s.Stats()
		if err != nil {
			t.Fatal(err)
		}
		r.from["xsk.tx_invalid_descs"] = st.TxInvalidDescs
		r.readUDP(fd, true)
	})
	r.want(got, compare.Exact, "xsk.tx_invalid_descs", 200)
}

// sendDescs sends n stamped frames; of each three the first is whole, the second empty, the third over its chunk's end.
func (r *trial) sendDescs(s *xsk.Socket, n int) {
	flow := packet.Flow{SrcMAC: r.p.Peer.MAC, DstMAC: r.p.SUT.MAC, Src: r.p.Peer.IP4, Dst: r.p.SUT.IP4, SrcPort: 10000, DstPort: testPort}
	descs := make([]xsk.Desc, 1)
	for i := range n {
		if s.Reserve(descs) == 0 {
			r.t.Fatal("no frame to send from")
		}
		room := s.Buffer(descs[0])
		frame, err := flow.Build(room, 200, 0, packet.Stamp{Run: testRun, Number: uint64(i)})
		if err != nil {
			r.t.Fatal(err)
		}
		descs[0].Len = []uint32{uint32(len(frame)), 0, uint32(len(room)) + 1}[i%3]
		s.Submit(descs)
		if err := s.Flush(time.Second); err != nil {
			r.t.Fatal(err)
		}
	}
}

// The receiver's frames run out and are never given back: all that was lost is the end of the stream.
func TestForcedTail(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmXDP)
	prog, s := r.xsk(&xsk.Options{RxRing: 2048, FillRing: 2048, RxFrames: 896}, bpf.Native)
	got := r.run(r.prepare(r.options(1000)), func() { r.readXSK(prog, s, true) })
	r.want(got, compare.Exact, "xsk.fill_ring_empty", 104)
	streams, err := measure.MergeStreams([]uint64{1000}, r.streams)
	if err != nil {
		t.Fatal(err)
	}
	if g := streams[0].Gaps; g.TailLost != 104 || g.Missing != 104 || g.Ranges != 1 || g.First != 896 {
		t.Errorf("gaps %+v", g)
	}
}

// Nothing arrives: each is still on one row, and each is of the stream's end.
func TestForcedEverything(t *testing.T) {
	for _, kernel := range []bool{true, false} {
		arm := measure.ArmXDP
		if kernel {
			arm = measure.ArmUDP
		}
		r := newTrial(t, nstest.Options{}, arm)
		var read func()
		if kernel {
			fd := r.udp(64<<20, false)
			read = func() { r.readUDP(fd, true) }
		} else {
			prog, s := r.xsk(&xsk.Options{}, bpf.Native)
			read = func() { r.readXSK(prog, s, true) }
		}
		o := r.options(1000)
		o.Faults = bpf.Faults{WrongMAC: 1}
		r.want(r.run(r.prepare(o), read), compare.Exact, "link.other_host", 1000)
		streams, err := measure.MergeStreams([]uint64{1000}, r.streams)
		if err != nil {
			t.Fatal(err)
		}
		if g := streams[0].Gaps; r.in.Unique != 0 || g.TailLost != 1000 {
			t.Errorf("unique %d, gaps %+v", r.in.Unique, g)
		}
	}
}

// A NAPI thread that cannot run leaves the veth ring its 256 slots (VETH_RING_SIZE): all but 256 are refused. Whether
// the thread ran all the same is asked of the scheduler, whether the kernel sent something of its own of SNMP, and only
// then is it tried again.
func TestForcedRingFullExactly(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs 2 CPUs: one for the sender, one to keep the NAPI thread from")
	}
	for range 20 {
		if overflow(t) {
			return
		}
	}
	t.Fatal("in 20 tries the NAPI thread was never kept from running while nothing else was sent")
}

func overflow(t *testing.T) bool {
	const sent, slots = 1000, 256
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	r.p.Silent(t)
	fd := r.udp(64<<20, false)
	napi := threadedNAPI(t, r.p.SUT)
	pinThread(t, napi, 0)
	o := r.options(sent)
	o.Rate = 0
	send := r.prepare(o)
	kept := false
	got := r.run(func() (n, injected uint64) {
		release := hog(t)
		defer release()
		before := timesRun(t, napi)
		n, injected = send()
		kept = timesRun(t, napi) == before
		return n, injected
	}, func() { r.readUDP(fd, true) })
	if !kept || r.in.From["icmp6.OutMsgs"] != 0 { // a multicast listener report takes a slot as well
		return false
	}
	r.want(got, compare.Exact, "veth.ring_full", sent-slots)
	return true
}

// hog keeps CPU 0 from all but itself, for 700 ms at most: the kernel's fair server gives others a turn after 950 ms.
func hog(t *testing.T) (release func()) {
	t.Helper()
	var stop atomic.Bool
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine, and its priority with it
		var set unix.CPUSet
		set.Set(0)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			started <- fmt.Errorf("pin to CPU 0: %w", err)
			return
		}
		fifo := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 99}
		if err := unix.SchedSetAttr(0, &fifo, 0); err != nil {
			started <- fmt.Errorf("SCHED_FIFO: %w", err)
			return
		}
		end := time.Now().Add(700 * time.Millisecond)
		started <- nil
		for !stop.Load() && time.Now().Before(end) {
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	return func() { stop.Store(true); <-done }
}

// timesRun is how often a thread was given a CPU: the third number of schedstat.
func timesRun(t *testing.T, tid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", tid))
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(b))
	if len(f) != 3 {
		t.Fatalf("schedstat %q", b)
	}
	return f[2]
}
