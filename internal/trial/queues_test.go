// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// oddGenerator has the load come on queue 1 of 2 alone: a live frame's queue is its CPU's number modulo the queues.
func oddGenerator(t *testing.T, b *trial.Bench) {
	t.Helper()
	cpus := slices.Concat(b.CPUs.Gen, b.CPUs.Others)
	i := slices.IndexFunc(cpus, func(c int) bool { return c%2 == 1 })
	if i < 0 {
		t.Skip("needs a CPU with an odd number that no reader has")
	}
	b.CPUs.Gen = cpus[i : i+1]
}

// Frames on a queue that nobody reads are lost, all of them, and have a row of their own. A kernel arm reads them, since its
// socket does not care for queues.
func TestQueueWithoutReader(t *testing.T) {
	for arm, want := range map[string]map[string]uint64{"xdp:auto": {"xdp.other_queue": few}, "kernel:recvmmsg": {}} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 2)
			b.Queues = 1
			oddGenerator(t, b)
			got := run(t, b, spec(t, b, arm, few))
			if !maps.Equal(rows(got), want) || got.Lost != want["xdp.other_queue"] || got.Unexplained != 0 || got.Received != few-got.Lost {
				t.Fatalf("received %d, lost %d, unexplained %d, ledger %+v, want %v", got.Received, got.Lost, got.Unexplained, got.Ledger, want)
			}
			if got.PerWorker != nil {
				t.Errorf("one worker, and yet %v by worker", got.PerWorker)
			}
		})
	}
}

// Flows spread over the sockets of a kernel arm by their hash, whatever queue they come on; those of an xdp arm have what
// came on their queue. What the workers read adds up to what was received.
func TestWorkersCount(t *testing.T) {
	for _, c := range []struct {
		arm   string
		flows int
		idle  bool
	}{{"kernel:recvmmsg", compare.SpreadFlows, false}, {"kernel:epoll", compare.SpreadFlows, false}, {"kernel:epoll+reuseport=3", compare.SpreadFlows, false}, {"kernel:recvmmsg", 1, true}, {"xdp:auto", compare.SpreadFlows, true}, {"xdp:asavie", compare.SpreadFlows, true}} {
		t.Run(c.arm, func(t *testing.T) {
			b := bench(t, 2)
			oddGenerator(t, b)
			s := spec(t, b, c.arm, few)
			s.Load.Flow = b.Flow(false, c.flows)
			got := run(t, b, s)
			workers := 2
			if s.Arm.Option("reuseport") == "3" {
				workers = 3
			}
			if got.Received != few || sum(got.PerWorker) != few || len(got.PerWorker) != workers {
				t.Fatalf("received %d, by worker %v, ledger %+v", got.Received, got.PerWorker, got.Ledger)
			}
			x := compare.Imbalance(got.PerWorker)
			if c.idle != math.IsInf(x, 1) || c.idle == (x < 3) {
				t.Errorf("%d flows: shares %v are %v apart", c.flows, got.PerWorker, x)
			}
			if got.Effective.Sockets != workers {
				t.Errorf("%d sockets, want %d", got.Effective.Sockets, workers)
			}
		})
	}
}

func TestDropCountsByQueue(t *testing.T) {
	b := bench(t, 2)
	oddGenerator(t, b)
	s := spec(t, b, "xdp:auto", few)
	s.Role = agent.Drop
	if got := run(t, b, s); got.Received != few || !slices.Equal(got.PerWorker, []uint64{0, few}) {
		t.Fatalf("received %d, by queue %v", got.Received, got.PerWorker)
	}
}

func sum(list []uint64) (n uint64) {
	for _, v := range list {
		n += v
	}
	return n
}

// A receiver notes what each so many datagrams took it, and a read finds one datagram or none.
func TestMilestones(t *testing.T) {
	for _, arm := range []string{"kernel:epoll", "kernel:recvmmsg", "xdp:auto"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := spec(t, b, arm, few)
			s.Every = 1000
			got := run(t, b, s)
			var packets, bytes, calls uint64
			for i, m := range got.Milestones {
				if m.Index != i+1 || m.ElapsedNs == 0 {
					t.Errorf("milestone %d: %+v", i, m)
				}
				packets, bytes, calls = packets+m.Packets, bytes+m.Bytes, calls+m.Calls
			}
			if len(got.Milestones) != few/1000 || packets < 3000 || packets > few || bytes != packets*18 {
				t.Fatalf("received %d, milestones %+v", got.Received, got.Milestones)
			}
			if arm == "kernel:epoll" && calls < packets {
				t.Errorf("%d datagrams with %d calls of read", packets, calls)
			}
			for _, c := range got.ByCPU {
				if sum := c.Reader + c.NAPI + c.Softirq + c.Interrupt + c.Other + c.Idle; sum < 0.5 || sum > 1.1 {
					t.Errorf("CPU %d was had for %.2f of the time: %+v", c.CPU, sum, c)
				}
			}
			if got.CPU.Method != "schedstat" && len(got.ByCPU) < 2 {
				t.Errorf("by CPU: %+v", got.ByCPU)
			}
		})
	}
}

// One sending CPU reaches every queue through AF_XDP sockets: counts are exact, and each worker has the flows of its queue.
func TestOneCPUFeedsAllQueues(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg", "kernel:epoll", "kernel:nosocket", "kernel:packet", "xdp:auto", "xdp:copy+wait=poll", "xdp:asavie"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 2)
			oddGenerator(t, b)
			if err := b.FeedXSK(); err != nil {
				t.Fatal(err)
			}
			s := spec(t, b, arm, few)
			s.Load.Flow = b.Flow(false, 64)
			s.Load.Sizes = []int{64, 200}
			got := run(t, b, s)
			if got.Sent != few || got.Received != few || got.Unexplained != 0 || got.Corrupt != 0 || got.Duplicate != 0 || got.Reordered != 0 {
				t.Fatalf("sent %d, received %d, unexplained %d, corrupt %d, duplicate %d, reordered %d, ledger %+v (%s)", got.Sent, got.Received, got.Unexplained,
					got.Corrupt, got.Duplicate, got.Reordered, got.Ledger, got.InvalidBecause)
			}
			switch {
			case s.Arm.Engine == compare.XDP && !slices.Equal(got.PerWorker, []uint64{few / 2, few / 2}):
				t.Errorf("by queue %v", got.PerWorker)
			case s.Arm.Variant == "epoll" && (sum(got.PerWorker) != few || slices.Min(got.PerWorker) == 0):
				t.Errorf("by socket %v", got.PerWorker)
			}
		})
	}
}

// A flood through AF_XDP sockets loses what does not fit the rings, and every lost frame has its row.
func TestFloodOfAllQueues(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 2)
			oddGenerator(t, b)
			b.CPUs.Placement, b.CPUs.NAPI = rig.Shared, b.CPUs.Readers
			if err := b.FeedXSK(); err != nil {
				t.Fatal(err)
			}
			s := spec(t, b, arm, 60_000)
			s.Load.Flow, s.Load.PPS = b.Flow(false, 64), 0
			s.Setting.Sched = rig.Other
			got := run(t, b, s)
			if err := got.Check(); err != nil {
				t.Error(err)
			}
			if got.Sent != 60_000 || got.Unexplained != 0 || got.Received == 0 {
				t.Errorf("sent %d, received %d, unexplained %d, ledger %+v (%s)", got.Sent, got.Received, got.Unexplained, got.Ledger, got.InvalidBecause)
			}
			t.Logf("received %d of %d, %v", got.Received, got.Sent, rows(got))
		})
	}
}
