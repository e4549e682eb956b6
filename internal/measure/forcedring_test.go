// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"twopath/bpf"
	"twopath/compare"
	"twopath/internal/measure"
	"twopath/internal/nstest"
	"twopath/xsk"
)

// A flood of 4-5 Mpps against one NAPI thread that takes every packet through the stack: the ring must overflow. The
// refusal shows at the sending end, in the sender's tx_dropped and in the receiver's rx_dropped: one row.
func TestForcedRingFull(t *testing.T) {
	const sent = 200_000
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<20, false)
	pinThread(t, threadedNAPI(t, r.p.SUT), 0)
	o := r.options(sent)
	o.Rate = 0
	got := r.run(r.prepare(o), func() { r.readUDP(fd, true) })
	ring := r.in.From["ethtool.tx_queue_0_xdp_xmit_errors"]
	if ring == 0 || r.in.From["link.tx_dropped"] < ring || r.in.To["link.rx_dropped"] < ring {
		t.Errorf("refused %d, sender's tx_dropped %d, receiver's rx_dropped %d", ring, r.in.From["link.tx_dropped"], r.in.To["link.rx_dropped"])
	}
	r.want(got, compare.Exact, "veth.ring_full", int(ring), "udp.rcvbuf_full", int(r.to["sock.drops"]))
}

func pinThread(t *testing.T, tid, cpu int) {
	t.Helper()
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		t.Fatalf("pin thread %d to CPU %d: %v", tid, cpu, err)
	}
}

// threadedNAPI moves the device's receive processing into a kernel thread and gives its id.
func threadedNAPI(t *testing.T, e *nstest.End) (pid int) {
	t.Helper()
	e.Do(t, func() {
		// /sys shows the namespace it was mounted in, so mount another, which nobody else sees.
		fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fs)
		if err := unix.FsconfigCreate(fs); err != nil {
			t.Fatal(err)
		}
		mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(mnt)
		f, err := unix.Openat(mnt, "class/net/"+e.Name+"/threaded", unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(f)
		before := napiThreads(t, e.Name)
		if _, err := unix.Write(f, []byte("1")); err != nil {
			t.Fatal(err)
		}
		for p := range napiThreads(t, e.Name) {
			if !before[p] {
				pid = p
			}
		}
	})
	if pid == 0 {
		t.Fatal("no NAPI thread appeared")
	}
	return pid
}

// napiThreads lists the kernel threads named after a device. Other namespaces may have devices of the same name.
func napiThreads(t *testing.T, device string) map[int]bool {
	t.Helper()
	out := map[int]bool{}
	files, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !strings.HasPrefix(string(b), "napi/"+device+"-") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil {
			t.Fatal(err)
		}
		out[pid] = true
	}
	return out
}

// Frames on a queue without a socket, and a socket in the slot of a queue it is not bound to.
func TestForcedQueues(t *testing.T) {
	queue := (runtime.NumCPU() - 1) % 2 // the generator's CPU modulo the queues
	for _, misplace := range []bool{false, true} {
		r := newTrial(t, nstest.Options{Queues: 2}, measure.ArmXDP)
		prog, s := r.xsk(&xsk.Options{Queue: 1 - queue}, bpf.Native)
		row := "xdp.other_queue"
		if misplace {
			row = "xdp.redirect_failed"
			if err := prog.SetSocket(queue, s.FD()); err != nil {
				t.Fatal(err)
			}
		}
		got := r.run(r.prepare(r.options(500)), func() {
			r.readXSK(prog, s, true)
			r.to["redirect.other_queue"] = 0
			if !misplace {
				_, queues, err := prog.Counters()
				if err != nil {
					t.Fatal(err)
				}
				r.to["redirect.other_queue"] = queues[queue]
			}
		})
		r.want(got, compare.Exact, row, 500)
	}
}

// A frame over the MTU: sendto says EBUSY, the frame is completed all the same, and tx_dropped alone tells.
func TestForcedXSKTooLong(t *testing.T) {
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
		r.p.Peer.Do(t, func() { r.sendXSK(s, 300, func(i int) int { return []int{200, 200, 1600}[i%3] }) })
		return 300, 0
	}, func() { r.readUDP(fd, true) })
	r.want(got, compare.Exact, "tx.device_drop", 100)
}
