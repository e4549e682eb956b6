// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// Process is a running agent and the client that speaks to it.
type Process struct {
	*Client
	cmd  *exec.Cmd
	done chan struct{} // closed when the process was waited for
}

// Launch starts cmd with start (which may place it in a namespace) and speaks to it over its standard input and output.
// What it writes to standard error is kept for error messages, the last 4 KiB.
func Launch(name string, cmd *exec.Cmd, start func(*exec.Cmd) error) (*Process, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: stdin: %w", name, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: stdout: %w", name, err)
	}
	tail := &tailBuffer{max: 4096}
	cmd.Stderr = tail
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	p.Client = NewClient(name, pipes{out, in}, tail.String)
	go func() {
		<-p.Client.Gone() // Wait closes the pipes, so the last answer must be in first
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// PID is the process id of the agent (of ssh, when it runs on another host).
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Close says bye and waits for the process; one that does not leave within three seconds is killed.
func (p *Process) Close() error {
	err := p.Client.Close()
	select {
	case <-p.done:
		return err
	case <-time.After(3 * time.Second):
	}
	return errors.Join(err, p.Kill())
}

// Kill ends the process at once. The kernel then closes its sockets and detaches its programs.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	_ = p.Client.conn.Close()
	select {
	case <-p.done:
		return nil
	case <-time.After(3 * time.Second):
		return errors.Join(err, fmt.Errorf("%s: process %d survives SIGKILL", p.name, p.PID()))
	}
}

type pipes struct {
	io.ReadCloser
	w io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p pipes) Close() error {
	return errors.Join(ignoreClosed(p.w.Close()), ignoreClosed(p.ReadCloser.Close()))
}

// tailBuffer keeps the last max bytes written.
type tailBuffer struct {
	mu  sync.Mutex
	b   []byte
	max int
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - t.max; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
