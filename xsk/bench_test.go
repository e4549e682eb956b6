// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// flood sends test frames out of an end with XDP live frames (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18) from the last CPU, until stopped.
// It is the fastest sender there is for a veth pair.
func flood(b *testing.B, e *nstest.End) (stop func()) {
	b.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(e.Index)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	}})
	if err != nil {
		b.Fatalf("load generator: %v", err)
	}
	var end atomic.Bool
	done := make(chan error, 1)
	go e.Do(b, func() {
		pin(b, runtime.NumCPU()-1)
		for !end.Load() {
			if _, err := prog.Run(&ebpf.RunOptions{Data: frame(0, 60), Repeat: 1 << 19, Flags: unix.BPF_F_TEST_XDP_LIVE_FRAMES}); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	})
	return func() {
		end.Store(true)
		if err := <-done; err != nil {
			b.Errorf("generate: %v", err)
		}
		prog.Close()
	}
}

func pin(b *testing.B, cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		b.Fatalf("pin to CPU %d: %v", cpu, err)
	}
}

// BenchmarkReceiveFlood receives as fast as it can what the other core sends as fast as it can: a service rate, for comparing versions in one sitting.
func BenchmarkReceiveFlood(b *testing.B) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"ring256", Options{RxRing: 256}}, {"ring2048", Options{}}, {"ring8192", Options{RxRing: 8192}}, {"chunk2048", Options{ChunkSize: 2048}}, {"poll", Options{Wait: Poll}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.o.TxRing = None
			p, s := receiver(b, nstest.Options{}, c.o)
			runtime.LockOSThread() // and the thread dies with this goroutine: it stays pinned
			pin(b, 0)
			descs := make([]Desc, 64)
			defer flood(b, p.Peer)()
			for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
				s.Release(descs[:s.Receive(descs)])
			}
			first := s.RxCounters()
			b.ResetTimer()
			var sum uint64
			for left := b.N; left > 0; {
				n := s.Receive(descs)
				for _, d := range descs[:n] {
					sum += uint64(s.Frame(d)[20])
				}
				s.Release(descs[:n])
				left -= n
				if n == 0 && c.o.Wait == Poll {
					if _, err := s.Wait(time.Second); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.StopTimer()
			n := s.RxCounters()
			b.ReportMetric(float64(n.Received-first.Received)/b.Elapsed().Seconds()/1e6, "Mpps")
			b.ReportMetric(float64(n.Received-first.Received)/float64(n.Batches-first.Batches), "frames/batch")
			b.ReportMetric(float64(n.EmptyPolls-first.EmptyPolls)/float64(n.Received-first.Received), "empty/frame")
		})
	}
}

// BenchmarkSend sends from the first core; what the peer's stack does with the frames is on the second.
func BenchmarkSend(b *testing.B) {
	for _, c := range []struct {
		name string
		o    Options
	}{
		{"budget32", Options{}}, {"budget512", Options{TxBudget: 512}},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := nstest.NewPair(b, nstest.Options{})
			c.o.RxRing = None
			s := openAt(b, p.SUT, c.o)
			runtime.LockOSThread()
			pin(b, 0)
			for i := range uint64(s.mode.Obtained.TxFrames) {
				copy(s.mem[s.tx.base+i*s.chunk:], frame(0, 60))
			}
			descs := make([]Desc, 64)
			b.ResetTimer()
			for left := b.N; left > 0; {
				n := s.Reserve(descs)
				for i := range descs[:n] {
					descs[i].Len = 60
				}
				left -= s.Submit(descs[:n])
				if err := s.Kick(); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if err := s.Flush(time.Second); err != nil {
				b.Fatal(err)
			}
			t := s.TxCounters()
			b.ReportMetric(float64(t.Completed)/b.Elapsed().Seconds()/1e6, "Mpps")
			b.ReportMetric(float64(t.Completed)/float64(t.Kicks), "frames/kick")
		})
	}
}
