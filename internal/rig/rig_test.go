// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/namespace"
	"twopath/internal/nstest"
)

// controller makes a rig with threaded NAPI and an agent on each side, says so, and waits to be killed.
func controller() {
	r, err := New(Options{Queues: 2})
	for _, s := range r.Sides() {
		err = errors.Join(err, s.SetNAPI(NAPIOptions{Threaded: true, CPUs: []int{0}}))
		threads, nerr := s.NAPI()
		err = errors.Join(err, nerr)
		for _, n := range threads {
			fmt.Println("napi", n.PID)
		}
		agent := reexec("agent")
		out, perr := agent.StdoutPipe()
		err = errors.Join(err, perr, s.Start(agent, []int{1}))
		line, rerr := bufio.NewReader(out).ReadString('\n')
		err = errors.Join(err, rerr)
		fmt.Print(line)
	}
	if err != nil {
		fmt.Println("error", err)
	}
	fmt.Println("ready")
	time.Sleep(time.Minute)
}

func TestRigLeavesTheHostAsItWas(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	for i := range 20 {
		r, err := New(Options{Queues: 1 + i%4})
		if err != nil {
			t.Fatalf("rig %d: %v", i, err)
		}
		for _, s := range r.Sides() {
			if err := s.SetNAPI(NAPIOptions{Threaded: true, CPUs: []int{0}, Policy: FIFO}); err != nil {
				t.Fatalf("rig %d: %v", i, err)
			}
		}
		if err := errors.Join(r.Close(), r.Close()); err != nil {
			t.Fatalf("rig %d: close: %v", i, err)
		}
		if err := r.SUT.Do(func() error { return nil }); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("rig %d: Do after Close: %v, want os.ErrClosed", i, err)
		}
		if err := r.SUT.Start(exec.Command("true"), nil); !errors.Is(err, os.ErrClosed) {
			t.Fatalf("rig %d: Start after Close: %v, want os.ErrClosed", i, err)
		}
	}
	sameHost(t, before)
}

func TestNothingSurvivesAKilledController(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	c := reexec("controller")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pids := map[string][]int{}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		kind, pid, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Error(lines.Text())
		}
		pids[kind] = append(pids[kind], n)
	}
	if len(pids["agent"]) != 2 || len(pids["napi"]) != 4 {
		t.Errorf("agents and NAPI threads before the kill: %v, want 2 and 4", pids)
	}
	c.Process.Kill()
	c.Wait()
	killed := time.Now()
	for kind, list := range pids {
		for _, pid := range list {
			for alive(pid) && time.Since(killed) < 2*time.Second {
				time.Sleep(time.Millisecond)
			}
			if alive(pid) {
				t.Errorf("%s %d is alive 2 s after its controller was killed", kind, pid)
			}
		}
	}
	sameHost(t, before)
	t.Logf("all gone %v after the kill", time.Since(killed))
}

// alive says whether a process runs; one that waits for its parent to notice its end does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

func TestStartPlacesTheChild(t *testing.T) {
	r := newRig(t, Options{})
	for _, s := range r.Sides() {
		for _, cpu := range []int{1, 0} {
			cmd := reexec("agent")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(cmd, []int{cpu}); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
			got, err := affinity(cmd.Process.Pid)
			if err != nil || !sameCPUs(got, []int{cpu}) {
				t.Errorf("child may run on CPUs %v, %v, want %d", got, err, cpu)
			}
			ns, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid))
			var want string
			if derr := s.Do(func() (err error) { want, err = os.Readlink(threadNS); return }); derr != nil || err != nil || ns != want {
				t.Errorf("child is in %s, %v, want %s, %v", ns, err, want, derr)
			}
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
}

func TestCloseEndsChildren(t *testing.T) {
	nstest.Root(t)
	r, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	cmd := reexec("agent")
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, r.SUT.Start(cmd, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("child ended with %v, want killed", err)
	}
}

func TestStartReportsWhatCannotStart(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.SUT.Start(exec.Command("/no/such/program"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want os.ErrNotExist", err)
	}
	if err := r.SUT.Start(exec.Command("true"), []int{1000}); !errors.Is(err, unix.EINVAL) {
		t.Errorf("CPU 1000: got %v, want EINVAL", err)
	}
	if err := r.SUT.Start(exec.Command("true"), []int{-1}); err == nil {
		t.Error("CPU -1 was accepted")
	}
}

func TestDoPassesErrorsAndSurvivesGoexit(t *testing.T) {
	r := newRig(t, Options{})
	if err := r.SUT.Do(func() error { return io.EOF }); err != io.EOF {
		t.Errorf("got %v, want EOF", err)
	}
	t.Run("skips", func(t *testing.T) {
		if err := r.SUT.Do(func() error { runtime.Goexit(); return nil }); !errors.Is(err, namespace.ErrThreadEnded) {
			t.Errorf("got %v, want ErrThreadEnded", err)
		}
	})
}

func TestDoNeverUsesTheMainThread(t *testing.T) {
	r := newRig(t, Options{})
	before, err := os.Readlink("/proc/self/ns/net") // the main thread's
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		err := r.Peer.Do(func() error {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("ran on the main thread")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if after, err := os.Readlink("/proc/self/ns/net"); after != before || err != nil {
		t.Errorf("main thread went from %s to %s, %v", before, after, err)
	}
}

func TestBadOptionsAreUsageErrors(t *testing.T) {
	for _, o := range []Options{{Queues: -1}, {Queues: 65}, {MTU: 100}, {MTU: 70000}} {
		r, err := New(o)
		var ref *Refusal
		if !errors.As(err, &ref) || !ref.Usage || ref.Cure == "" {
			t.Errorf("%+v: got %v, %v, want a usage refusal with a cure", o, r, err)
		}
		if err == nil {
			r.Close()
		}
	}
}
