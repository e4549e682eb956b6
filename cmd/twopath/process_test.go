// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/vishvananda/netlink"

	"twopath/compare"
	"twopath/internal/nstest"
)

// started is a run of the program with what it wrote.
type process struct {
	*exec.Cmd
	out, err bytes.Buffer
	ended    chan error
}

func start(t *testing.T, line string) *process {
	t.Helper()
	return startWith(t, line, os.Environ())
}

// startWith starts the program in an environment.
func startWith(t *testing.T, line string, env []string) *process {
	t.Helper()
	p := &process{Cmd: program(strings.Fields(line)...), ended: make(chan error, 1)}
	p.Env = append(env, programVariable+"=1")
	p.Dir = t.TempDir()
	p.Stdout, p.Stderr = &p.out, &p.err
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill() })
	go func() { p.ended <- p.Wait() }()
	return p
}

// wait waits for the end, and for the exit code.
func (p *process) wait(t *testing.T, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.ProcessState.ExitCode()
	case <-time.After(limit):
		p.Process.Signal(syscall.SIGQUIT)
		time.Sleep(time.Second)
		t.Fatalf("it does not end within %v: %s", limit, p.err.String())
		return -1
	}
}

// gentle is a plan that a busy machine can carry out too.
const gentle = "compare udp-rx --rate 20k --count 2000 --placement sender --warmup 0 --json -"

func document(t *testing.T, b []byte) compare.Document {
	t.Helper()
	docs, err := compare.Read(bytes.NewReader(b))
	if err != nil || len(docs) != 1 {
		t.Fatalf("%d documents, %v: %s", len(docs), err, b)
	}
	return docs[0]
}

func TestCompareWritesOneValidDocument(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	p := start(t, gentle+" --blocks 1 --require xdp:auto.loss_ratio<=1")
	code := p.wait(t, 5*time.Minute)
	if code != exitInconclusive {
		t.Errorf("exit %d for one block, want %d (insufficient): %s", code, exitInconclusive, p.err.String())
	}
	d := document(t, p.out.Bytes())
	if d.Incomplete || d.Verdict == nil || len(d.Arms) != 2 || d.Limit == nil || len(d.Requirements) != 1 {
		t.Errorf("incomplete %v, verdict %v, %d arms, limit %v, %d requirements", d.Incomplete, d.Verdict, len(d.Arms), d.Limit, len(d.Requirements))
	}
	measured := 0
	for _, tr := range d.Trials {
		if tr.Kind == compare.Measured && tr.Valid {
			measured++
			if tr.Lost != 0 || tr.Unexplained != 0 || tr.Sent != 2000 {
				t.Errorf("%s: sent %d lost %d unexplained %d: %+v", tr.Arm, tr.Sent, tr.Lost, tr.Unexplained, tr.Ledger)
			}
		}
	}
	validate(t, p.out.Bytes())
	sameHost(t, before)
	t.Logf("%d valid trials", measured)
}

// validate checks a record against the schema that the program prints.
func validate(t *testing.T, record []byte) {
	t.Helper()
	_, schema, _ := call("schema")
	s, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", s); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(record))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(v); err != nil {
		t.Error(err)
	}
}

// TestInterruptedOnce: Ctrl-C at any time ends the run soon, with one document marked incomplete and exit code 130.
func TestInterruptedOnce(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	for _, after := range []time.Duration{50 * time.Millisecond, 800 * time.Millisecond, 2500 * time.Millisecond} {
		p := start(t, "compare udp-rx --rate 20k --duration 20s --placement sender --json -")
		time.Sleep(after)
		p.Process.Signal(syscall.SIGINT)
		if code := p.wait(t, 30*time.Second); code != exitInterrupted {
			t.Errorf("after %v: exit %d: %s", after, code, p.err.String())
		}
		if p.out.Len() > 0 {
			if d := document(t, p.out.Bytes()); !d.Incomplete || d.Reason == "" {
				t.Errorf("after %v: incomplete %v, reason %q", after, d.Incomplete, d.Reason)
			}
			validate(t, p.out.Bytes())
		}
		sameHost(t, before)
	}
}

func TestInterruptedTwice(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	p := start(t, "compare udp-rx --rate 20k --duration 20s --placement sender")
	time.Sleep(1500 * time.Millisecond)
	p.Process.Signal(syscall.SIGINT)
	time.Sleep(2 * time.Millisecond)
	p.Process.Signal(syscall.SIGINT)
	if code := p.wait(t, 10*time.Second); code != exitInterrupted {
		t.Errorf("exit %d: %s", code, p.err.String())
	}
	sameHost(t, before)
}

// kills is how often each victim is killed; TWOPATH_TEST_KILLS changes it.
func kills(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(os.Getenv("TWOPATH_TEST_KILLS"))
	if err != nil {
		return 3
	}
	return n
}

// TestKilled sends SIGKILL to the controller, to either agent and to both at random moments: the host is as it was, and
// what somebody else attached to another device is still there.
func TestKilled(t *testing.T) {
	nstest.Root(t)
	foreign := foreignProgram(t)
	before := hostState(t)
	for _, victim := range []string{"controller", "one agent", "both agents", "all"} {
		for i := range kills(t) {
			p := start(t, "compare udp-rx --rate 20k --count 6000 --blocks 1 --warmup 0 --placement sender --json -")
			time.Sleep(time.Duration(rand.IntN(2500)) * time.Millisecond)
			pids := children(p.Process.Pid)
			switch {
			case victim == "controller":
				p.Process.Kill()
			case len(pids) == 0: // between two trials
			case victim == "one agent":
				syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL)
			default:
				for _, pid := range pids {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			if victim == "all" {
				p.Process.Kill()
			}
			code := p.wait(t, 3*time.Minute)
			if victim != "controller" && victim != "all" && code != exitInconclusive && code != exitMachine {
				t.Errorf("%s, round %d: exit %d: %s", victim, i, code, p.err.String())
			}
			if strings.Contains(p.err.String(), "goroutine ") {
				t.Errorf("%s: a stack trace: %s", victim, p.err.String())
			}
			sameHost(t, before)
		}
	}
	if code, out, _ := call("doctor", "--json"); code != exitDone || !strings.Contains(out, `no run has left anything behind`) {
		t.Errorf("doctor: exit %d: %s", code, out)
	}
	if err := foreign(); err != nil {
		t.Error(err)
	}
}

// children are the processes that pid has started.
func children(pid int) (pids []int) {
	tasks, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(s); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}

// foreignProgram attaches an XDP program of somebody else to a device of its own and returns a check that it is there.
func foreignProgram(t *testing.T) func() error {
	t.Helper()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tpforeign0"}, PeerName: "tpforeign1"}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(veth) })
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "not_ours", Type: ebpf.XDP, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { prog.Close() })
	l, err := netlink.LinkByName("tpforeign0")
	if err != nil {
		t.Fatal(err)
	}
	x, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: l.Attrs().Index, Flags: link.XDPDriverMode})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return func() error {
		_, err := x.Info()
		return err
	}
}

func setUp(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		l, err := netlink.LinkByName(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetUp(l); err != nil {
			t.Fatal(err)
		}
	}
}

// TestForeignProgramIsNamedAndLeft asks for a device that somebody else's program is on.
func TestForeignProgramIsNamedAndLeft(t *testing.T) {
	nstest.Root(t)
	there := foreignProgram(t)
	setUp(t, "tpforeign0", "tpforeign1")
	before := hostState(t)
	p := start(t, "run udp-rx xdp:auto --nic tpforeign0 --peer :tpforeign1 --rate 1k --count 100")
	if code := p.wait(t, time.Minute); code != exitMachine {
		t.Errorf("exit %d: %s", code, p.err.String())
	}
	for _, want := range []string{"tpforeign0", "id ", "not_ours"} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("%q does not speak of %q", p.err.String(), want)
		}
	}
	if err := there(); err != nil {
		t.Error(err)
	}
	sameHost(t, before)
}

// TestTwoPorts uses two ports of this host, a cable that is there already, and gives them back as they were.
func TestTwoPorts(t *testing.T) {
	nstest.Root(t)
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tpport0"}, PeerName: "tpport1"}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(veth) })
	setUp(t, "tpport0", "tpport1")
	before := hostState(t)
	p := start(t, "compare udp-rx --nic tpport0 --peer :tpport1 --rate 10k --count 1000 --blocks 1 --warmup 0 --placement shared --json -")
	p.wait(t, 3*time.Minute)
	d := document(t, p.out.Bytes())
	valid := 0
	for _, tr := range d.Trials {
		if tr.Kind == compare.Measured {
			valid++
		}
		if tr.Unexplained != 0 {
			t.Errorf("%s: unexplained %d", tr.Arm, tr.Unexplained)
		}
	}
	if valid == 0 {
		t.Errorf("no trial: %s %s", d.Reason, p.err.String())
	}
	sameHost(t, before)
}

// TestRunSavesRecord writes the record beside the user and says its name.
func TestRunSavesRecord(t *testing.T) {
	nstest.Root(t)
	p := start(t, "run udp-rx kernel:epoll --rate 10k --count 1000 --placement sender")
	p.wait(t, time.Minute)
	files, _ := filepath.Glob(p.Dir + "/twopath-udp-rx-*.json")
	if len(files) != 1 || !strings.Contains(p.out.String(), filepath.Base(files[0])) {
		t.Fatalf("files %v; %s", files, p.out.String())
	}
	b, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(b) {
		t.Fatal("not JSON")
	}
	for _, format := range []string{"text", "json", "csv", "html"} {
		if code, out, stderr := call("report", "--format", format, files[0]); code != 0 || out == "" {
			t.Errorf("report %s: exit %d, %d B, %s", format, code, len(out), stderr)
		}
	}
}
