// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"
	"golang.org/x/sys/unix"
)

// Part is one agent's part in one trial. Calls come one at a time, except Stop and Live, which come while Run or Drain
// is under way.
type Part interface {
	// Start begins reading (receivers) or does nothing.
	Start() error
	// Counters reads every witness of this side.
	Counters() (map[string]uint64, error)
	// Live is the number of frames received or sent so far.
	Live() Live
	// Close undoes everything: sockets closed, programs detached.
	Close() error
}

// Source is a Part that generates.
type Source interface {
	Part
	// Run sends until the count is reached or Stop is called.
	Run() (Generated, error)
	// Stop ends Run soon.
	Stop()
}

// Sink is a Part that receives.
type Sink interface {
	Part
	// Finish stops reading and returns what came.
	Finish() (Received, error)
}

// Factory makes the part that p asks for; it is the only place that knows concrete engines.
type Factory func(p Prepare) (Part, Prepared, error)

// ServeOptions is how an agent serves.
type ServeOptions struct {
	Version string
	Factory Factory
	// Place (optional) gets a port of this host ready; closing what it returns puts it back.
	Place func(Place) (Placed, io.Closer, error)
}

// Serve speaks the protocol on rwc until the controller says bye or its end closes, and then closes the part.
func Serve(ctx context.Context, rwc io.ReadWriteCloser, o ServeOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &server{o: o, bye: cancel}
	conn := newConn(ctx, rwc, jsonrpc2.AsyncHandler(jsonrpc2.HandlerWithError(s.handle)))
	select {
	case <-conn.DisconnectNotify():
	case <-ctx.Done():
	}
	err := s.close()
	return errors.Join(err, ignoreClosed(conn.Close()))
}

// newConn frames messages with headers and keeps the library from logging to standard error: what goes wrong with a
// connection reaches the caller as an error.
func newConn(ctx context.Context, rwc io.ReadWriteCloser, h jsonrpc2.Handler) *jsonrpc2.Conn {
	return jsonrpc2.NewConn(ctx, jsonrpc2.NewBufferedStream(rwc, jsonrpc2.VSCodeObjectCodec{}), h,
		jsonrpc2.SetLogger(log.New(io.Discard, "", 0)))
}

// ignoreClosed drops the errors of closing what the other end, or the end of the process, has closed already.
func ignoreClosed(err error) error {
	if errors.Is(err, jsonrpc2.ErrClosed) || errors.Is(err, os.ErrClosed) || errors.Is(err, io.ErrClosedPipe) {
		return nil
	}
	return err
}

type server struct {
	o   ServeOptions
	bye func()

	mu   sync.Mutex // guards what follows; calls that take long copy it and let go
	part Part
	port io.Closer     // of Place
	live chan struct{} // closed to end the notifications
}

func (s *server) handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
	switch r.Method {
	case methodHello:
		return s.hello()
	case methodPlace:
		var p Place
		if err := decode(r, &p); err != nil {
			return nil, err
		}
		return s.place(p)
	case methodPrepare:
		var p Prepare
		if err := decode(r, &p); err != nil {
			return nil, err
		}
		return s.prepare(p)
	case methodStart:
		return withPart(s, func(p Part) (any, error) { return nil, s.start(conn, p) })
	case methodCounters:
		return withPart(s, counters)
	case methodRun:
		return withPart(s, func(p Part) (any, error) {
			src, ok := p.(Source)
			if !ok {
				return nil, fmt.Errorf("run: this agent does not generate")
			}
			return src.Run()
		})
	case methodStop:
		return withPart(s, func(p Part) (any, error) {
			if src, ok := p.(Source); ok {
				src.Stop()
			}
			return nil, nil
		})
	case methodDrain:
		var d drainParams
		if err := decode(r, &d); err != nil {
			return nil, err
		}
		return withPart(s, func(p Part) (any, error) { return drain(ctx, p, d) })
	case methodFinish:
		return withPart(s, func(p Part) (any, error) {
			sink, ok := p.(Sink)
			if !ok {
				return nil, fmt.Errorf("finish: this agent does not receive")
			}
			return sink.Finish()
		})
	case methodBye:
		err := s.close()
		time.AfterFunc(10*time.Millisecond, s.bye) // after the answer has left
		return nil, err
	}
	return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "no method " + r.Method}
}

func decode(r *jsonrpc2.Request, into any) error {
	if r.Params == nil {
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: r.Method + " takes parameters"}
	}
	if err := json.Unmarshal(*r.Params, into); err != nil {
		return &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()}
	}
	return nil
}

func (s *server) hello() (Hello, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Hello{}, fmt.Errorf("uname: %w", err)
	}
	return Hello{Protocol: Protocol, Version: s.o.Version, PID: os.Getpid(), Kernel: unix.ByteSliceToString(u.Release[:])}, nil
}

func (s *server) place(p Place) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.o.Place == nil || s.port != nil {
		return nil, fmt.Errorf("place: this agent has no port to give")
	}
	got, port, err := s.o.Place(p)
	if err != nil {
		return nil, err
	}
	s.port = port
	return got, nil
}

func (s *server) prepare(p Prepare) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.part != nil {
		return nil, fmt.Errorf("prepare: this agent has its part already; one agent serves one trial")
	}
	part, got, err := s.o.Factory(p)
	if err != nil {
		return nil, err
	}
	s.part = part
	return got, nil
}

func (s *server) start(conn *jsonrpc2.Conn, p Part) error {
	if err := p.Start(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = make(chan struct{})
		go notify(conn, p, s.live)
	}
	return nil
}

func notify(conn *jsonrpc2.Conn, p Part, end <-chan struct{}) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-end:
			return
		case <-t.C:
			// A notification that cannot be sent means that the controller is gone, which Serve sees by itself.
			_ = conn.Notify(context.Background(), notifyLive, p.Live())
		}
	}
}

func withPart(s *server, do func(Part) (any, error)) (any, error) {
	s.mu.Lock()
	p := s.part
	s.mu.Unlock()
	if p == nil {
		return nil, fmt.Errorf("this agent was not prepared")
	}
	return do(p)
}

func counters(p Part) (any, error) {
	c, err := p.Counters()
	if err != nil {
		return nil, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return nil, fmt.Errorf("read clock: %w", err)
	}
	return Counters{At: now.Nano(), Counters: c}, nil
}

// drain waits until all expected frames are in, or none has come for a while. It only looks: the reader reads on.
func drain(ctx context.Context, p Part, d drainParams) (Drained, error) {
	began := time.Now()
	last, quiet := p.Live().Received, began
	for {
		n := p.Live().Received
		now := time.Now()
		if n != last {
			last, quiet = n, now
		}
		done := n >= d.Expect || now.Sub(quiet).Seconds() >= d.Quiet
		if done || now.Sub(began).Seconds() >= d.Timeout {
			return Drained{Received: n, Seconds: now.Sub(began).Seconds(), Complete: done}, nil
		}
		select {
		case <-ctx.Done():
			return Drained{Received: n}, ctx.Err()
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (s *server) close() error {
	s.mu.Lock()
	part, live, port := s.part, s.live, s.port
	s.part, s.live, s.port = nil, nil, nil
	s.mu.Unlock()
	if live != nil {
		close(live)
	}
	var errs []error
	if part != nil {
		if src, ok := part.(Source); ok {
			src.Stop()
		}
		errs = append(errs, part.Close())
	}
	if port != nil {
		errs = append(errs, port.Close())
	}
	return errors.Join(errs...)
}
