// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"twopath/internal/agent"
	"twopath/internal/engine"
)

// agentMemory is when an agent's garbage is collected after all: it makes none to speak of while packets flow.
const agentMemory = 4 << 30

func (a *app) agentCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "agent",
		Short: "One end of the cable: started by the other verbs, speaks JSON-RPC on stdin and stdout",
		Long: `agent is one end of the cable. The other verbs start it inside the namespace of its side, or on another host as
"ssh HOST sudo twopath agent", and speak JSON-RPC 2.0 to it over its standard input and output. It leaves when its input ends.`,
		Example: "  ssh HOST sudo twopath agent < /dev/null     # is it there, and does ssh let me in?",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := withoutPreemption(); err != nil {
				return err
			}
			// Ctrl-C goes to the whole foreground group; it is the controller that decides when to stop.
			signal.Ignore(syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
			// A collection would stop the readers for longer than their rings last.
			debug.SetGCPercent(-1)
			debug.SetMemoryLimit(agentMemory)
			return agent.Serve(context.Background(), stdio{a.stdin, a.stdout}, agent.ServeOptions{Version: programVersion(), Factory: engine.New, Place: place})
		},
	}
}

// noPreemption keeps the runtime from interrupting readers by signals: each time, a reader's thread would hand its
// processor to another thread and wait for it to come back. Nothing in an agent loops for long without a function call.
const noPreemption = "asyncpreemptoff=1"

// agentEnv is the environment of an agent started from here.
func agentEnv() []string { return append(os.Environ(), "GODEBUG="+godebug()) }

func godebug() string {
	if v := os.Getenv("GODEBUG"); v != "" && !strings.Contains(v, noPreemption) {
		return v + "," + noPreemption
	}
	return noPreemption
}

// withoutPreemption starts the program again in its own place when it was started without the setting, by ssh for one: the
// runtime reads it only once.
func withoutPreemption() error {
	if strings.Contains(os.Getenv("GODEBUG"), noPreemption) {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program's file: %w", err)
	}
	if err := syscall.Exec(exe, os.Args, agentEnv()); err != nil {
		return fmt.Errorf("start %s again with GODEBUG=%s: %w", exe, godebug(), err)
	}
	return nil
}

type stdio struct {
	io.Reader
	io.Writer
}

func (s stdio) Close() error {
	var errs []error
	for _, f := range []any{s.Reader, s.Writer} {
		if c, ok := f.(io.Closer); ok {
			errs = append(errs, c.Close())
		}
	}
	return errors.Join(errs...)
}
