// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"os"
	"os/signal"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/agent"
	"twopath/internal/measure"
)

// runner is a worker's loop in workload.
type runner interface {
	Run() error
	Stop()
}

// crew runs a part's loops, each on a thread and CPU of its own, and takes their CPU time.
type crew struct {
	rate measure.TickRate
	napi []int // NAPI threads, for the account
	cpus []int // loop i runs on cpus[i mod len]

	loops []runner
	// wake ends the wait that loop i may be in; nil where loops look at Stop by themselves.
	wake func(i int) error
	// together says that no loop goes on when another has failed.
	together bool

	cpu *cpuAccount
	// continued gets a SIGCONT for each time this process was stopped and let go on. A stopped worker looks to every
	// counter like one that sleeps, while its queues overflow.
	continued chan os.Signal
	begin     chan struct{} // closed when the loops may run
	wg        sync.WaitGroup
	mu        sync.Mutex // guards what follows
	errs      []error    // by loop
	started   bool
	ended     bool
}

func newCrew(p agent.Prepare) (*crew, error) {
	rate, err := measure.CalibrateTicks(20 * time.Millisecond)
	if err != nil {
		return nil, err
	}
	return &crew{rate: rate, napi: p.NAPI, cpus: p.CPUs, continued: make(chan os.Signal, 64), begin: make(chan struct{})}, nil
}

// start brings all threads up, starts the account, and lets the loops run.
func (c *crew) start() error {
	c.mu.Lock()
	twice := c.started
	c.started = true
	c.errs = make([]error, len(c.loops))
	c.mu.Unlock()
	if twice {
		return errors.New("start: started already")
	}
	defer close(c.begin)
	tids := make(chan int, len(c.loops))
	for i, l := range c.loops {
		c.wg.Go(func() {
			err := onCPU(c.cpus[i%len(c.cpus)], func() error {
				tids <- unix.Gettid()
				<-c.begin
				return l.Run()
			})
			c.mu.Lock()
			c.errs[i] = err
			c.mu.Unlock()
			if err != nil && c.together {
				c.quit()
			}
		})
	}
	var ids []int
	for range c.loops {
		select {
		case id := <-tids:
			ids = append(ids, id)
		case <-time.After(5 * time.Second):
			c.quit()
			return errors.Join(errors.New("start: a worker's thread does not come up"), errors.Join(c.failures()...))
		}
	}
	c.cpu = newCPUAccount(ids, c.napi, c.cpus)
	if err := c.cpu.read(); err != nil {
		c.quit()
		return err
	}
	signal.Notify(c.continued, unix.SIGCONT)
	return nil
}

// quit tells all loops to end.
func (c *crew) quit() {
	for _, l := range c.loops {
		l.Stop()
	}
}

// running tells whether the loops are at work.
func (c *crew) running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started && !c.ended
}

func (c *crew) failures() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.errs)
}

// stop ends the loops and waits for them; a second call does nothing.
func (c *crew) stop() error {
	if !c.running() {
		return nil
	}
	c.cpu.note()
	c.quit()
	var errs []error
	for i := range c.loops {
		if c.wake != nil {
			errs = append(errs, c.wake(i))
		}
	}
	return errors.Join(append(errs, c.wait()...)...)
}

// wait is until all loops have ended, by stop or by themselves; the errors are by loop.
func (c *crew) wait() []error {
	c.wg.Wait()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	return c.failures()
}

// account is the CPU time from start to now; nil when nothing was started.
func (c *crew) account() (*agent.CPU, error) {
	if c.cpu == nil {
		return nil, nil
	}
	return c.cpu.end(c.rate)
}

// stops is how often the process was stopped and let go on.
func (c *crew) stops() uint64 { return uint64(len(c.continued)) }

// close ends what runs. A nil crew has nothing to end.
func (c *crew) close() error {
	if c == nil {
		return nil
	}
	signal.Stop(c.continued)
	return errors.Join(c.stop(), c.cpu.close())
}
