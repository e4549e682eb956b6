// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/jsonrpc2"
)

// ErrDied is the error of every call to an agent whose process is gone.
var ErrDied = errors.New("agent died")

// ErrHung is the error of a call that an agent did not answer in time.
var ErrHung = errors.New("agent does not answer")

// callTimeout bounds the calls that do not wait for traffic. Attaching XDP makes some NICs reset for seconds.
const callTimeout = 20 * time.Second

// Client is the controller's end of one agent. Its methods may be called from any goroutine.
type Client struct {
	name   string // for errors: "sut agent"
	conn   *jsonrpc2.Conn
	closer io.Closer
	tail   func() string // the last lines the agent wrote to standard error
	live   atomic.Pointer[Live]
	once   sync.Once
	err    error
}

// NewClient speaks to an agent over rwc. tail, which may be nil, tells what it wrote to standard error.
func NewClient(name string, rwc io.ReadWriteCloser, tail func() string) *Client {
	c := &Client{name: name, closer: rwc, tail: tail}
	c.live.Store(&Live{})
	h := jsonrpc2.HandlerWithError(func(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) (any, error) {
		if r.Method != notifyLive || r.Params == nil {
			return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "no method " + r.Method}
		}
		var l Live
		if err := json.Unmarshal(*r.Params, &l); err != nil {
			return nil, err
		}
		c.live.Store(&l)
		return nil, nil
	})
	c.conn = newConn(context.Background(), rwc, h)
	return c
}

// Name is what errors call the agent.
func (c *Client) Name() string { return c.name }

// Live is the newest live counters of the agent.
func (c *Client) Live() Live { return *c.live.Load() }

// Gone is closed when the agent's connection ends.
func (c *Client) Gone() <-chan struct{} { return c.conn.DisconnectNotify() }

func (c *Client) call(ctx context.Context, limit time.Duration, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := c.conn.Call(ctx, method, params, result)
	var e *jsonrpc2.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e):
		return fmt.Errorf("%s: %s", c.name, e.Message)
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return fmt.Errorf("%s: %s after %v: %w", c.name, method, limit, ErrHung)
	case errors.Is(err, context.Canceled):
		return err
	}
	// A broken pipe and an early end both mean that the process is gone.
	msg := ""
	if c.tail != nil {
		time.Sleep(20 * time.Millisecond) // its last words may still be on the way
		if t := strings.TrimSpace(c.tail()); t != "" {
			msg = ": " + t
		}
	}
	return fmt.Errorf("%s: %s: %w%s", c.name, method, ErrDied, msg)
}

// Hello asks who is there and refuses another version of the protocol.
func (c *Client) Hello(ctx context.Context) (Hello, error) {
	var h Hello
	if err := c.call(ctx, callTimeout, methodHello, nil, &h); err != nil {
		return h, err
	}
	if h.Protocol != Protocol {
		return h, fmt.Errorf("%s: speaks protocol %d (version %s), this is %d; install the same twopath on both hosts", c.name, h.Protocol, h.Version, Protocol)
	}
	return h, nil
}

// Place gets a port of another host ready. Some NICs need seconds.
func (c *Client) Place(ctx context.Context, p Place) (Placed, error) {
	var r Placed
	return r, c.call(ctx, callTimeout, methodPlace, p, &r)
}

// Prepare gives the agent its part.
func (c *Client) Prepare(ctx context.Context, p Prepare) (Prepared, error) {
	var r Prepared
	return r, c.call(ctx, callTimeout, methodPrepare, p, &r)
}

// Start begins reading.
func (c *Client) Start(ctx context.Context) error {
	return c.call(ctx, callTimeout, methodStart, nil, nil)
}

// Counters reads every witness of the agent's side.
func (c *Client) Counters(ctx context.Context) (Counters, error) {
	var r Counters
	return r, c.call(ctx, callTimeout, methodCounters, nil, &r)
}

// Run generates; it returns when the count is reached or Stop was called, and is bounded by limit.
func (c *Client) Run(ctx context.Context, limit time.Duration) (Generated, error) {
	var r Generated
	return r, c.call(ctx, limit, methodRun, nil, &r)
}

// Stop ends Run soon.
func (c *Client) Stop(ctx context.Context) error {
	return c.call(ctx, callTimeout, methodStop, nil, nil)
}

// Drain waits until expect frames are in or none came for quiet, limit at most.
func (c *Client) Drain(ctx context.Context, expect uint64, quiet, limit time.Duration) (Drained, error) {
	var r Drained
	return r, c.call(ctx, limit+callTimeout, methodDrain, drainParams{expect, quiet.Seconds(), limit.Seconds()}, &r)
}

// Finish stops reading and returns what came.
func (c *Client) Finish(ctx context.Context) (Received, error) {
	var r Received
	return r, c.call(ctx, callTimeout, methodFinish, nil, &r)
}

// Close says bye and ends the connection. It does not fail when the agent is gone already.
func (c *Client) Close() error {
	c.once.Do(func() {
		err := c.call(context.Background(), 5*time.Second, methodBye, nil, nil)
		if errors.Is(err, ErrDied) {
			err = nil
		}
		c.err = errors.Join(err, ignoreClosed(c.conn.Close()))
	})
	return c.err
}
