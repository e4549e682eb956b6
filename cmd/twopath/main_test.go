// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// programVariable makes the test binary the program itself: what is tested as a process is what users run.
const programVariable = "TWOPATH_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) == "1" {
		main()
	}
	os.Exit(nstest.RunIsolated(m, unix.CLONE_NEWNET))
}

// program is the command line as a process.
func program(args ...string) *exec.Cmd {
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), programVariable+"=1")
	return c
}

// call runs a command line in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(append([]string{"twopath"}, args...), strings.NewReader(""), &out, &err)
	return code, out.String(), err.String()
}

// TestBadInput types what users type wrong: one line on stderr that names it and says what to do, the contract's exit
// code, nothing on stdout.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	record := file("record.json", `{"schema":"twopath/v1"}`)
	for _, c := range []struct {
		line string
		code int
		want []string
	}{
		{"comprae", 2, []string{"comprae", "compare"}},
		{"compare dns --zone " + file("bad.zone", "$ORIGIN t.example.\n$TTL 60\n@ SOA ns host 1 2 3 4 5\nwww A 192.0.2.1\nbad A 192.0.2.300\n"), 2, []string{"bad.zone:5:", "192.0.2.300", "--zone"}},
		{"compare dns --zone " + file("wild.zone", "$ORIGIN t.example.\n$TTL 60\n@ SOA ns host 1 2 3 4 5\n*.www A 192.0.2.1\n"), 2, []string{"wild.zone:4:", "wildcard"}},
		{"compare dns --zone " + file("empty.zone", ""), 2, []string{"empty.zone", "SOA"}},
		{"compare dns --zone /nonexistent.zone", 2, []string{"/nonexistent.zone", "no such file"}},
		{"compare dns --queries " + file("bad.queries", "www.bench.example A\nwww.bench.example NOSUCH\n"), 2, []string{"bad.queries:2:", "NOSUCH"}},
		{"compare dns --driver flamethrower", 2, []string{"flamethrower", "dnsperf"}},
		{"compare dns --size 64", 2, []string{"size", "contents"}},
		{"compare dns --flows 65", 2, []string{"65", "64"}},
		{"compare dns xdp:asavie", 2, []string{"xdp:asavie", "dns"}},
		{"compare udp-rx --zone my.zone", 2, []string{"zone", "udp-rx", "dns"}},
		{"compare udp-rx --edns", 2, []string{"edns", "dns"}},
		{"compare", 2, []string{"udp-rx"}},
		{"compare upd-rx", 2, []string{"upd-rx", "udp-rx"}},
		{"compare udp-rx kernel:recvmsg", 2, []string{"recvmsg", "recvmmsg"}},
		{"compare udp-rx recvmmsg xdp:auto", 2, []string{"kernel:recvmmsg"}},
		{"compare udp-rx xdp:auto+rign=64", 2, []string{"rign", "ring"}},
		{"compare udp-rx xdp:auto+ring=100", 2, []string{"ring=100", "power of two"}},
		{"compare udp-rx xdp:auto+wait=block", 2, []string{"wait=block", "spin"}},
		{"compare udp-rx kernel:nosocket+dev_weight=0", 2, []string{"dev_weight", "1..65536"}},
		{"compare udp-rx kernel:nosocket+threaded=on", 2, []string{"threaded", "--placement"}},
		{"compare udp-rx --szie 64", 2, []string{"--szie", "--size"}},
		{"compare udp-rx --size 63", 2, []string{"63", "64"}},
		{"compare udp-rx --size 1519", 2, []string{"1519", "1518"}},
		{"compare udp-rx --size 80 --ip 6", 2, []string{"80", "84"}},
		{"compare udp-rx --payload 17", 2, []string{"17", "18"}},
		{"compare udp-rx --rate 2Mbs", 2, []string{"2Mbs", "1.5Mpps"}},
		{"compare udp-rx --rate line", 2, []string{"line:1g"}},
		{"compare udp-rx --rate 0", 2, []string{"above 0"}},
		{"compare udp-rx --require xdp:auto.los_ratio<=1", 2, []string{"los_ratio", "loss_ratio"}},
		{"compare fragments --pattern reversed", 2, []string{"reversed", "in-order", "mix"}},
		{"compare fragments --size 64", 2, []string{"--payload", "--mtu"}},
		{"compare fragments --payload 1000", 2, []string{"without fragments"}},
		{"compare fragments --queues 2", 2, []string{"--queues 1"}},
		{"compare fragments kernel:packet xdp:auto", 2, []string{"kernel:packet", "not an arm of fragments"}},
		{"compare fragments --duration 60s", 2, []string{"--count"}},
		{"compare udp-rx --pattern mix", 2, []string{"only the test fragments"}},
		{"search fragments", 2, []string{"compare fragments --rate"}},
		{"compare udp-rx --blocks 0", 2, []string{"blocks"}},
		{"compare udp-rx --flows x", 2, []string{"flows"}},
		{"reproduce nothing", 2, []string{"nothing", "udp-receive, line-rate-64"}},
		{"reproduce udp-recieve", 2, []string{`did you mean "udp-receive"?`}},
		{"reproduce udp-receive line-rate-64", 2, []string{"reproduce"}},
		{"reproduce udp-receive --placement shard", 2, []string{`did you mean "shared"?`}},
		{"reproduce udp-receive --size 64", 2, []string{"--size"}},
		{"compare udp-rx --queues x", 2, []string{"queues", "1,2,4"}},
		{"compare udp-rx --workers 1,1", 2, []string{"queues", "twice"}},
		{"compare udp-rx --queues 1 --workers 2", 2, []string{"--queues and --workers", "drop one"}},
		{"compare udp-rx --queues 1,300", 2, []string{"300", "1..256"}},
		{"compare udp-rx --work 5", 2, []string{"5", "5us"}},
		{"compare udp-rx --placement everywhere", 2, []string{"everywhere", "shared"}},
		{"compare udp-rx --softirq-sched fif", 2, []string{"fif", "fifo"}},
		{"compare udp-rx --cpus sut=x", 2, []string{"x", "0-3"}},
		{"compare udp-rx --nic eth9", 2, []string{"--peer"}},
		{"compare udp-rx --json - --html -", 2, []string{"--html"}},
		{"compare udp-rx --json /nonexistent/x.json", 2, []string{"/nonexistent/x.json"}},
		{"compare udp-rx --html " + dir, 2, []string{"directory"}},
		{"compare --plan /nonexistent.yaml", 2, []string{"nonexistent"}},
		{"compare --plan " + file("bad.yaml", "test: udp-rx\nrat: 5\n"), 2, []string{"rat", "line 2", "rate"}},
		{"compare --plan " + file("tab.yaml", "test: [\n"), 2, []string{"plan"}},
		{"compare udp-rx xdp:auto", 2, []string{"xdp:auto", "twopath run"}},
		{"run udp-rx xdp:auto kernel:epoll", 2, []string{"run"}},
		{"search", 2, []string{"udp-rx"}},
		{"search udp-rx kernel:epol", 2, []string{"epol", "epoll"}},
		{"search udp-rx --goal rfc2455", 2, []string{"rfc2455", "rfc2544"}},
		{"search udp-rx --goal loss=200%", 2, []string{"loss", "below 100 %"}},
		{"search udp-rx --goal quick --goal quick", 2, []string{"quick", "twice"}},
		{"search udp-rx --placement sender", 2, []string{"sender", "shared", "compare udp-rx --rate max"}},
		{"search http-cps", 2, []string{"connections", "compare http-cps"}},
		{"search udp-echo --mode pingpong", 2, []string{"pingpong", "--mode open"}},
		{"search udp-rx --rate 1M", 2, []string{"--rate"}},
		{"search udp-rx --blocks 6", 2, []string{"--blocks"}},
		{"search udp-rx --max-load max", 2, []string{"max", "number"}},
		{"search udp-rx --max-trials -1", 2, []string{"max_trials", "negative"}},
		{"search udp-rx xdp:auto xdp:auto", 2, []string{"xdp:auto", "twice"}},
		{"compare udp-rx --goal quick", 2, []string{"--goal"}},
		{"demo now", 2, []string{"demo"}},
		{"report", 2, []string{"report"}},
		{"report /nonexistent", 2, []string{"nonexistent"}},
		{"report --format pdf x", 2, []string{"pdf", "html"}},
		{"report " + file("garbage.json", "{not json"), 2, []string{"garbage.json"}},
		{"report " + file("foreign.json", `{"schema":"other/v9"}`), 2, []string{"other/v9"}},
		{"compare udp-rx --json x.out --html ./x.out", 2, []string{"x.out", "one file"}},
		{"report --output " + record + " " + record, 2, []string{"record.json", "another file"}},
		{"compare replay", 2, []string{"capture", "replay FILE.pcapng"}},
		{"compare replay nosuch.pcap", 2, []string{"nosuch.pcap", "no such file"}},
		{"compare replay main_test.go", 2, []string{"main_test.go", "neither pcap nor pcapng", "editcap"}},
		{"compare replay x.pcap --speed fast", 2, []string{"fast", "x0.5"}},
		{"compare replay x.pcap --speed x2 --rate 1k", 2, []string{"x2", "--rate"}},
		{"compare replay x.pcap --size 64", 2, []string{"size", "replay"}},
		{"compare replay x.pcap --count 100", 2, []string{"--loops"}},
		{"compare replay x.pcap --rewrite-mac mine", 2, []string{"mine", "sut"}},
		{"compare replay x.pcap --rewrite-ip 10.0.0.1", 2, []string{"10.0.0.1", "198.18.0.1"}},
		{"compare replay x.pcap kernel:epoll", 2, []string{"kernel:epoll", "kernel:packet"}},
		{"compare udp-rx --loops 3", 2, []string{"loops", "replay"}},
		{"diff one", 2, []string{"two record files"}},
		{"diff a b --max-regress lots", 2, []string{"lots", "5%"}},
		{"doctor a b", 2, []string{"doctor"}},
		{"tune sideways", 2, []string{"tune"}},
		{"tune plan --only rx_rign", 2, []string{"rx_rign", "rx_ring"}},
		{"tune plan --only rx_ring", 2, []string{"rx_ring", "tune plan IF"}},
		{"tune plan --profile fast", 2, []string{"fast", "latency"}},
		{"tune plan --set rx_ring", 2, []string{"rx_ring", "rx_ring=2048"}},
		{"tune plan --set netdev_budget=none", 2, []string{"netdev_budget=none", "1..2147483647"}},
		{"tune apply nosuch0", 2, []string{"nosuch0", "ip link"}},
		{"tune undo now", 2, []string{"tune undo"}},
		{"rig sideways", 2, []string{"rig"}},
		{"version 1", 2, []string{"version"}},
		{"help comprae", 2, []string{"comprae"}},
	} {
		code, stdout, stderr := call(strings.Fields(c.line)...)
		if code != c.code || stdout != "" {
			t.Errorf("%s: exit %d, want %d; stdout %q; stderr %q", c.line, code, c.code, stdout, stderr)
		}
		if strings.Count(strings.TrimSpace(stderr), "\n") != 0 || !strings.HasPrefix(stderr, "twopath: ") {
			t.Errorf("%s: not one line: %q", c.line, stderr)
		}
		for _, w := range c.want {
			if !strings.Contains(stderr, w) {
				t.Errorf("%s: %q does not speak of %q", c.line, stderr, w)
			}
		}
	}
}

func TestHelpOfEveryVerbShowsExamples(t *testing.T) {
	_, stdout, _ := call()
	for _, verb := range []string{"demo", "compare", "run", "search", "rig", "doctor", "tune", "report", "diff", "agent", "schema", "version", "completion"} {
		if !strings.Contains(stdout, "\n  "+verb+" ") {
			t.Errorf("the list of verbs lacks %s", verb)
		}
		code, out, _ := call(verb, "--help")
		if code != 0 || !strings.Contains(out, "twopath "+verb) {
			t.Errorf("%s --help: exit %d, %q", verb, code, out)
		}
		if verb != "completion" && !strings.Contains(out, "Examples:") {
			t.Errorf("%s --help shows no examples", verb)
		}
	}
}

func TestCompletionOfArms(t *testing.T) {
	for line, want := range map[string]string{"compare u": "udp-rx", "compare udp-rx kernel:r": "kernel:recvmmsg", "run udp-rx xdp:": "xdp:copy",
		"compare udp-rx kernel:nosocket+dev_w": "kernel:nosocket+dev_weight=", "compare udp-rx xdp:auto kernel:recvmmsg+gro+b": "kernel:recvmmsg+gro+batch="} {
		code, out, _ := call(append([]string{"__complete"}, strings.Fields(line)...)...)
		if code != 0 || !strings.Contains("\n"+out, "\n"+want) {
			t.Errorf("%s: exit %d, %q lacks %q", line, code, out, want)
		}
	}
}

// TestWithoutRoot runs the program as a user who may do nothing: it says what is missing, exit code 3.
func TestWithoutRoot(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Log("as root this is what a user without privileges sees")
	}
	for _, line := range []string{"compare udp-rx --count 1000", "demo", "rig up"} {
		c := nstest.Unprivileged(t, program(strings.Fields(line)...))
		out, err := c.CombinedOutput()
		if code := c.ProcessState.ExitCode(); code != exitMachine {
			t.Errorf("%s: exit %d (%v): %s", line, code, err, out)
		}
		if !strings.Contains(string(out), "sudo") || strings.Contains(string(out), "goroutine") {
			t.Errorf("%s: %s", line, out)
		}
	}
}
