// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain lets the test binary be the agent process of the tests below.
func TestMain(m *testing.M) {
	switch os.Getenv("AGENT_TEST") {
	case "serve":
		err := Serve(context.Background(), stdio{}, ServeOptions{Version: "test", Factory: func(Prepare) (Part, Prepared, error) {
			return &fake{stop: make(chan struct{})}, Prepared{}, nil
		}})
		fmt.Fprintln(os.Stderr, "served:", err)
		os.Exit(0)
	case "die":
		fmt.Fprintln(os.Stderr, "boom: no such luck")
		os.Exit(3)
	}
	os.Exit(m.Run())
}

type stdio struct{}

func (stdio) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (stdio) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

type fake struct {
	closed   atomic.Int32
	received atomic.Uint64
	stop     chan struct{}
	stopped  atomic.Bool
}

func (f *fake) Start() error                         { return nil }
func (f *fake) Counters() (map[string]uint64, error) { return map[string]uint64{"udp.NoPorts": 7}, nil }
func (f *fake) Live() Live                           { return Live{Received: f.received.Load()} }
func (f *fake) Close() error                         { f.closed.Add(1); return nil }
func (f *fake) Finish() (Received, error)            { return Received{Received: f.received.Load()}, nil }
func (f *fake) Stop() {
	if !f.stopped.Swap(true) {
		close(f.stop)
	}
}
func (f *fake) Run() (Generated, error) { <-f.stop; return Generated{Sent: 42}, nil }

func pair(t *testing.T, f *fake, fail error) (*Client, <-chan error) {
	t.Helper()
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(context.Background(), a, ServeOptions{Version: "test", Factory: func(Prepare) (Part, Prepared, error) {
			return f, Prepared{Notes: []string{"a note"}}, fail
		}})
	}()
	c := NewClient("test agent", b, nil)
	t.Cleanup(func() { c.Close() })
	return c, served
}

func TestTrialOverPipe(t *testing.T) {
	f := &fake{stop: make(chan struct{})}
	c, served := pair(t, f, nil)
	ctx := context.Background()
	if h, err := c.Hello(ctx); err != nil || h.Version != "test" || h.PID != os.Getpid() {
		t.Fatalf("hello: %+v, %v", h, err)
	}
	if err := c.Start(ctx); err == nil || !strings.Contains(err.Error(), "not prepared") {
		t.Fatalf("start before prepare: %v", err)
	}
	if p, err := c.Prepare(ctx, Prepare{Role: Receive}); err != nil || len(p.Notes) != 1 {
		t.Fatalf("prepare: %+v, %v", p, err)
	}
	if _, err := c.Prepare(ctx, Prepare{}); err == nil {
		t.Fatal("prepared twice")
	}
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	k, err := c.Counters(ctx)
	if err != nil || k.Counters["udp.NoPorts"] != 7 || k.At == 0 {
		t.Fatalf("counters: %+v, %v", k, err)
	}
	done := make(chan Generated)
	go func() { g, _ := c.Run(ctx, time.Minute); done <- g }()
	time.Sleep(10 * time.Millisecond)
	f.received.Store(5)
	d, err := c.Drain(ctx, 5, time.Second, time.Second)
	if err != nil || d.Received != 5 || !d.Complete {
		t.Fatalf("drain while run waits: %+v, %v", d, err)
	}
	if err := c.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if g := <-done; g.Sent != 42 {
		t.Fatalf("run: %+v", g)
	}
	for deadline := time.Now().Add(5 * time.Second); c.Live().Received != 5; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no live counters within 5 s")
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatalf("second close: %v", err)
	}
	if err := <-served; err != nil || f.closed.Load() != 1 {
		t.Fatalf("served: %v, closed %d times", err, f.closed.Load())
	}
}

func TestDrainEndsWhenQuiet(t *testing.T) {
	f := &fake{stop: make(chan struct{})}
	c, _ := pair(t, f, nil)
	ctx := context.Background()
	if _, err := c.Prepare(ctx, Prepare{}); err != nil {
		t.Fatal(err)
	}
	f.received.Store(3)
	d, err := c.Drain(ctx, 10, 50*time.Millisecond, 10*time.Second)
	if err != nil || d.Received != 3 || !d.Complete || d.Seconds > 5 {
		t.Fatalf("%+v, %v", d, err)
	}
}

func TestErrorsCrossTheWire(t *testing.T) {
	c, _ := pair(t, &fake{stop: make(chan struct{})}, errors.New("bind: queue 0 of sut0 is already in use"))
	_, err := c.Prepare(context.Background(), Prepare{})
	if err == nil || !strings.Contains(err.Error(), "test agent: bind: queue 0 of sut0 is already in use") {
		t.Fatalf("got %v", err)
	}
}

func TestControllerGoneClosesPart(t *testing.T) {
	f := &fake{stop: make(chan struct{})}
	a, b := net.Pipe()
	served := make(chan error, 1)
	go func() {
		served <- Serve(context.Background(), a, ServeOptions{Factory: func(Prepare) (Part, Prepared, error) { return f, Prepared{}, nil }})
	}()
	c := NewClient("x", b, nil)
	if _, err := c.Prepare(context.Background(), Prepare{}); err != nil {
		t.Fatal(err)
	}
	go c.Run(context.Background(), time.Minute)
	time.Sleep(10 * time.Millisecond)
	b.Close()
	select {
	case <-served:
	case <-time.After(5 * time.Second):
		t.Fatal("agent lives on without its controller")
	}
	if f.closed.Load() != 1 || !f.stopped.Load() {
		t.Fatalf("closed %d, stopped %v", f.closed.Load(), f.stopped.Load())
	}
}

func launch(t *testing.T, mode string) *Process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "AGENT_TEST="+mode)
	p, err := Launch("test agent", cmd, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Kill() })
	return p
}

func TestProcessLeavesAfterBye(t *testing.T) {
	p := launch(t, "serve")
	if _, err := p.Hello(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDeadAgentIsNamedWithItsLastWords(t *testing.T) {
	p := launch(t, "die")
	_, err := p.Hello(context.Background())
	if !errors.Is(err, ErrDied) || !strings.Contains(err.Error(), "boom") {
		t.Fatalf("got %v", err)
	}
}

func TestKilledDuringRun(t *testing.T) {
	p := launch(t, "serve")
	ctx := context.Background()
	if _, err := p.Prepare(ctx, Prepare{}); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := p.Run(ctx, time.Minute); failed <- err }()
	time.Sleep(20 * time.Millisecond)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; !errors.Is(err, ErrDied) {
		t.Fatalf("got %v", err)
	}
}

func TestHungAgent(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	go func() { // reads and never answers
		buf := make([]byte, 1024)
		for {
			if _, err := a.Read(buf); err != nil {
				return
			}
		}
	}()
	c := NewClient("mute agent", b, nil)
	_, err := c.Run(context.Background(), 50*time.Millisecond)
	if !errors.Is(err, ErrHung) {
		t.Fatalf("got %v", err)
	}
}
