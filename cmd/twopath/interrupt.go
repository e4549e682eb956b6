// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// watch is the watch for signals of one verb.
type watch struct {
	end func()

	mu    sync.Mutex
	leave func() // what must be undone before leaving at once
}

// onLeave says what must be undone before leaving at once, beside what goes with the process.
func (w *watch) onLeave(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leave = fn
}

// interruptible is a context that the first SIGINT, SIGTERM or SIGHUP cancels: the load is stopped, what is under way is
// counted, and what there is is printed. The second leaves at once; agents and namespaces go with the process.
func (a *app) interruptible() (context.Context, *watch) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 4)
	done := make(chan struct{})
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	w := &watch{}
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if n == 0 {
				fmt.Fprintln(a.stderr, "\ntwopath: stopping; what was measured will be printed (once more to leave at once)")
				cancel()
				continue
			}
			w.mu.Lock() // not given back: the process ends here
			if w.leave != nil {
				w.leave()
			}
			os.Exit(exitInterrupted)
		}
	}()
	var once sync.Once
	w.end = func() {
		once.Do(func() {
			signal.Stop(signals)
			close(done)
			cancel()
		})
	}
	return ctx, w
}
