// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/host"
	"twopath/internal/knob"
	"twopath/internal/namespace"
	"twopath/internal/nstest"
	"twopath/internal/report"
)

// tunePort makes a cable of this test's own and returns the name of one end.
func tunePort(t *testing.T) string {
	t.Helper()
	nstest.Root(t)
	v := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tptune0", NumRxQueues: 2, NumTxQueues: 2}, PeerName: "tptune1", PeerNumRxQueues: 2, PeerNumTxQueues: 2}
	if err := netlink.LinkAdd(v); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(v) })
	setUp(t, "tptune0", "tptune1")
	return "tptune0"
}

// shown is a port as ethtool and ip show it, and every knob that can be read.
func shown(t *testing.T, port string) string {
	t.Helper()
	var b strings.Builder
	for _, c := range [][]string{{"ethtool", "-k", port}, {"ethtool", "-l", port}, {"ip", "-d", "link", "show", port}} {
		if _, err := exec.LookPath(c[0]); err != nil {
			continue // the knobs below are read all the same
		}
		out, err := exec.Command(c[0], c[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", c, err, out)
		}
		b.Write(out)
	}
	for _, n := range knob.Names() {
		if r, err := knob.Read(n, knob.At{Port: port}); err == nil {
			fmt.Fprintf(&b, "%s=%s\n", n, r.Value)
		}
	}
	return b.String()
}

// tuning is a command line that changes many settings of a port.
const tuning = "--only queues,promisc,offload_rxvlan,offload_tso,offload_gso,offload_gro,gro_flush_timeout,napi_defer_hard_irqs,rps_cpus,threaded " +
	"--set queues=1 --set promisc=on --set offload_tso=off --set offload_gso=off --set offload_gro=on --set gro_flush_timeout=200us --set napi_defer_hard_irqs=2 --set rps_cpus=0 --set threaded=on"

// TestTune is the whole of it: the plan changes nothing, apply does and says so, a second one is refused, undo puts
// everything back.
func TestTune(t *testing.T) {
	port := tunePort(t)
	hostBefore, before := hostState(t), shown(t, port)
	do := func(line string, want int) string {
		t.Helper()
		code, out, stderr := call(strings.Fields(line)...)
		if code != want {
			t.Fatalf("%s: exit %d, want %d: %s%s", line, code, want, out, stderr)
		}
		return out + stderr
	}
	var plan report.TunePlan
	if err := json.Unmarshal([]byte(do("tune plan "+port+" --json "+tuning, exitDone)), &plan); err != nil || len(plan.Steps) != 10 || plan.Driver != "veth" {
		t.Errorf("plan %+v, %v", plan, err)
	}
	for _, want := range []string{"not supported by driver veth", "the port has no interrupts", "fixed by driver veth", "sudo twopath tune apply " + port} {
		if out := do("tune plan "+port, exitDone); !strings.Contains(out, want) {
			t.Errorf("the plan does not say %q: %s", want, out)
		}
	}
	if now := shown(t, port); now != before {
		t.Fatal("the plan changed something")
	}
	for line, want := range map[string]string{"tune plan tptu": port, "tune plan --only rx_": "rx_ring", "tune apply --set rps": "rps_cpus=", "tune apply --profile l": host.Latency} {
		if _, out, _ := call(append([]string{"__complete"}, strings.Fields(line)...)...); !strings.Contains(out, want+"\n") {
			t.Errorf("completion of %q: %q, want %q", line, out, want)
		}
	}
	if out := do("tune apply "+port+" --only offload_rxvlan --set rx_ring=4096", exitMachine); !strings.Contains(out, "rx_ring") || !strings.Contains(out, "as it was before") {
		t.Errorf("a knob the driver lacks: %s", out)
	}
	if now := shown(t, port); now != before {
		t.Fatalf("after a refusal:\n%s\nbefore:\n%s", now, before)
	}
	sameHost(t, hostBefore)
	var done report.TuneOutcome
	if err := json.Unmarshal([]byte(do("tune apply "+port+" --json "+tuning, exitDone)), &done); err != nil || len(done.Settings) < 9 || done.Journal == "" {
		t.Errorf("outcome %+v, %v", done, err)
	}
	for _, s := range done.Settings {
		if s.Want != "" && s.Now != s.Want {
			t.Errorf("%+v", s)
		}
	}
	if now := shown(t, port); now == before {
		t.Error("apply changed nothing")
	}
	if out := do("tune apply "+port, exitMachine); !strings.Contains(out, "tuned already") || !strings.Contains(out, "tune undo") {
		t.Errorf("second apply: %s", out)
	}
	if out := do("tune status", exitDone); !strings.Contains(out, "gro_flush_timeout") || !strings.Contains(out, "tune undo") {
		t.Errorf("status: %s", out)
	}
	if out := do("doctor", exitDone); !strings.Contains(out, "tune.journal") || !strings.Contains(out, "gro_flush_timeout 0 -> 200000") {
		t.Errorf("the doctor does not tell: %s", out)
	}
	if out := do("tune undo", exitDone); strings.Contains(out, "left alone") {
		t.Errorf("undo: %s", out)
	}
	if now := shown(t, port); now != before {
		t.Errorf("undone:\n%s\nbefore:\n%s", now, before)
	}
	if out := do("tune undo", exitDone); !strings.Contains(out, "nothing to undo") {
		t.Errorf("second undo: %s", out)
	}
	sameHost(t, hostBefore)
}

// TestTuneKilled kills apply, and undo, at random moments: undo puts everything back.
func TestTuneKilled(t *testing.T) {
	port := tunePort(t)
	hostBefore, before := hostState(t), shown(t, port)
	began := time.Now()
	if p := start(t, "tune apply "+port+" "+tuning); p.wait(t, 10*time.Second) != exitDone {
		t.Fatal(p.err.String())
	}
	takes := time.Since(began)
	if code, _, stderr := call("tune", "undo"); code != exitDone {
		t.Fatal(stderr)
	}
	midway := 0
	for i := range 5 * kills(t) {
		p := start(t, "tune apply "+port+" "+tuning)
		if i%2 == 0 {
			time.Sleep(rand.N(takes))
		} else { // as soon as there is a journal, or a little later: where it hurts
			for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
				if j, err := knob.Load("", knob.Tune); j != nil || err != nil {
					break
				}
			}
			time.Sleep(rand.N(4 * time.Millisecond))
		}
		p.Process.Kill()
		p.wait(t, 10*time.Second)
		if now := shown(t, port); now != before && !p.ProcessState.Exited() {
			midway++
		}
		if i%3 == 2 {
			u := start(t, "tune undo")
			time.Sleep(rand.N(takes))
			u.Process.Kill()
			u.wait(t, 10*time.Second)
		}
		if code, out, stderr := call("tune", "undo"); code != exitDone || strings.Contains(out, "left alone") {
			t.Errorf("round %d: exit %d: %s%s", i, code, out, stderr)
		}
		if now := shown(t, port); now != before {
			t.Fatalf("round %d:\n%s\nbefore:\n%s", i, now, before)
		}
	}
	sameHost(t, hostBefore)
	t.Logf("%d of %d were killed with something set", midway, 5*kills(t))
	if midway == 0 {
		t.Errorf("none of %d was killed with something set: the test tests nothing", 5*kills(t))
	}
}

// outside runs the program in the network namespace that the tests were started in, which has the machine's settings when
// that is the host's. No other test does that, and it names no interface.
func outside(t *testing.T, line string) (p *process) {
	t.Helper()
	ns, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", os.Getppid()))
	if err != nil {
		t.Skipf("the namespace that the tests were started in is not to be had: %v", err)
	}
	defer ns.Close()
	if err := namespace.In(ns, func() error { p = start(t, line); return nil }); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestTuneKilledOnTheMachine is the same with settings of the machine, by a value that does no harm.
func TestTuneKilledOnTheMachine(t *testing.T) {
	nstest.Root(t)
	f, err := os.OpenFile(os.TempDir()+"/twopath-test-sysctl.lock", os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	now := func() string {
		t.Helper()
		p := outside(t, "tune plan --json --only netdev_budget,dev_weight,rmem_default")
		if code := p.wait(t, 10*time.Second); code != exitDone {
			t.Fatalf("exit %d: %s", code, p.err.String())
		}
		var plan report.TunePlan
		if err := json.Unmarshal(p.out.Bytes(), &plan); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, s := range plan.Steps {
			fmt.Fprintf(&b, "%s=%s ", s.Knob, s.Now)
		}
		return b.String()
	}
	before := now()
	if strings.Contains(before, "dev_weight= ") {
		t.Skipf("the machine's settings are not to be seen from where the tests were started: %s", before)
	}
	hostBefore := hostState(t)
	if p := outside(t, "tune apply --set netdev_budget=301 --set dev_weight=65 --set rmem_default=212000 --only dev_weight"); p.wait(t, 10*time.Second) != exitDone {
		t.Fatalf("apply: %s", p.err.String())
	}
	if got := now(); !strings.Contains(got, "dev_weight=65 ") || !strings.Contains(got, "netdev_budget=301 ") {
		t.Errorf("applied: %s", got)
	}
	for i := range 2 * kills(t) {
		if i > 0 {
			p := outside(t, "tune apply --set netdev_budget=301 --set dev_weight=65 --set rmem_default=212000 --only dev_weight")
			time.Sleep(time.Duration(rand.IntN(25)) * time.Millisecond)
			p.Process.Kill()
			p.wait(t, 10*time.Second)
		}
		if p := outside(t, "tune undo"); p.wait(t, 10*time.Second) != exitDone || strings.Contains(p.out.String(), "left alone") {
			t.Errorf("undo: %s%s", p.out.String(), p.err.String())
		}
		if got := now(); got != before {
			t.Fatalf("round %d: %s, was %s", i, got, before)
		}
	}
	sameHost(t, hostBefore)
}

// TestKilledWithKnobsSet kills runs whose arm sets knobs of a real port: the doctor, or the next run, puts them back.
func TestKilledWithKnobsSet(t *testing.T) {
	port := tunePort(t)
	hostBefore, before := hostState(t), shown(t, port)
	const line = "compare udp-rx kernel:recvmmsg xdp:copy+offload_rxvlan=off+gro_flush_timeout=20us+rps_cpus=0 --nic tptune0 --peer :tptune1 --rate 5k --count 500 --blocks 1 --warmup 0 --placement shared --json -"
	set, last := 0, ""
	for i := range 2 * kills(t) {
		p := start(t, line)
		deadline := time.Now().Add(20 * time.Second)
		for { // until a trial has them set, or by chance
			if j, err := knob.Load("", knob.Trial); err == nil && j != nil && j.Settled {
				set++
				break
			}
			if i%2 == 1 && rand.IntN(500) == 0 || time.Now().After(deadline) || children(p.Process.Pid) == nil && len(p.ended) > 0 {
				break
			}
			time.Sleep(2 * time.Millisecond)
		}
		p.Process.Kill()
		p.wait(t, 10*time.Second)
		last = p.err.String()
		if code, out, stderr := call("doctor", "--json"); code != exitDone {
			t.Errorf("doctor: exit %d: %s%s", code, out, stderr)
		}
		if now := shown(t, port); now != before {
			t.Fatalf("round %d:\n%s\nbefore:\n%s", i, now, before)
		}
		sameHost(t, hostBefore)
	}
	if set == 0 {
		t.Errorf("no run had got as far as its knobs: %s", last)
	}
}

// TestTuneRefusesThePortThatCarriesTheHost also with a port that is the way to somebody logged in; --force overrides it.
func TestTuneRefusesThePortThatCarriesTheHost(t *testing.T) {
	port := tunePort(t)
	before := hostState(t)
	l, err := netlink.LinkByName(port)
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: &net.IPNet{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}}); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := call("tune", "apply", port, "--only", "offload_rxvlan")
	if code != exitMachine || out != "" || !strings.Contains(stderr, "default route") || !strings.Contains(stderr, "--force") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	if code, out, _ := call("tune", "plan", port, "--only", "offload_rxvlan"); code != exitDone || !strings.Contains(out, "apply would refuse") {
		t.Errorf("plan: exit %d: %s", code, out)
	}
	if code, out, stderr := call("tune", "apply", port, "--only", "offload_rxvlan", "--force"); code != exitDone || !strings.Contains(out, "offload_rxvlan") {
		t.Errorf("forced: exit %d: %s%s", code, out, stderr)
	}
	if code, _, stderr := call("tune", "undo"); code != exitDone {
		t.Error(stderr)
	}
	sameHost(t, before)
}
