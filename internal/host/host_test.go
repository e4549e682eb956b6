// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// The test binary plays a user without privileges too.
func TestMain(m *testing.M) {
	if os.Getenv("HOST_TEST_ROLE") == "doctor" {
		json.NewEncoder(os.Stdout).Encode(Doctor(DoctorOptions{IF: "lo", Probes: probes()}))
		return
	}
	os.Exit(m.Run())
}

// probes are one of each outcome.
func probes() []Probe {
	return []Probe{
		{ID: "test.works", What: "a", Why: "w", Cure: "c", Try: func() error { return nil }},
		{ID: "test.missing", What: "b", Why: "w", Cure: "c", Try: func() error { return unix.EOPNOTSUPP }},
		{ID: "test.optional", What: "d", Why: "w", Cure: "c", Optional: true, Try: func() error { return unix.EOPNOTSUPP }},
		{ID: "test.denied", What: "e", Why: "w", Cure: "c", Try: func() error { return fmt.Errorf("try: %w", unix.EPERM) }},
	}
}

// sound asserts what every check has: an id of its own, a known status, words, and a cure where something is wrong.
func sound(t *testing.T, checks []Check) map[string]Check {
	t.Helper()
	out := make(map[string]Check)
	for _, c := range checks {
		if _, twice := out[c.ID]; twice {
			t.Errorf("two checks are called %s", c.ID)
		}
		out[c.ID] = c
		if c.ID == "" || strings.ToLower(c.ID) != c.ID || c.What == "" || c.Why == "" || !slices.Contains([]Status{Pass, Warn, Fail, Skip}, c.Status) {
			t.Errorf("not a whole check: %+v", c)
		}
		if (c.Status == Fail || c.Status == Warn) && c.Cure == "" {
			t.Errorf("%s is %s without a cure", c.ID, c.Status)
		}
		t.Logf("%-4s %-20s %s | %s", c.Status, c.ID, c.What, c.Cure)
	}
	return out
}

func status(t *testing.T, checks map[string]Check, want map[string]Status) {
	t.Helper()
	for id, s := range want {
		if c, ok := checks[id]; !ok || c.Status != s {
			t.Errorf("%s: got %+v, want %s", id, c, s)
		}
	}
}

func TestDoctorAsRoot(t *testing.T) {
	nstest.Root(t)
	checks := sound(t, Doctor(DoctorOptions{Probes: probes()}))
	status(t, checks, map[string]Status{"test.works": Pass, "test.missing": Fail, "test.optional": Warn, "test.denied": Fail,
		"cap.net_admin": Pass, "cap.sys_admin": Pass, "socket.af_xdp": Pass, "socket.packet_v3": Pass, "socket.udp_gro": Pass, "limit.rmem_max": Pass})
	if _, ok := checks["nic.driver"]; ok {
		t.Error("a device was looked at that nobody named")
	}
}

func TestDoctorAsNobody(t *testing.T) {
	c := nstest.Unprivileged(t, exec.Command("/proc/self/exe"))
	c.Env = append(os.Environ(), "HOST_TEST_ROLE=doctor")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []Check
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checks := sound(t, list)
	status(t, checks, map[string]Status{"test.works": Pass, "test.missing": Fail, "test.optional": Warn, "test.denied": Skip,
		"cap.net_admin": Fail, "cap.ipc_lock": Warn, "socket.af_xdp": Skip, "socket.packet_v3": Skip, "socket.udp_gro": Pass,
		"nic.xdp_attached": Pass, "nic.route": Pass})
	if !strings.Contains(checks["cap.net_admin"].Cure, "sudo") {
		t.Errorf("cure for a user: %q", checks["cap.net_admin"].Cure)
	}
}

func TestFacts(t *testing.T) {
	h := Facts()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	if h.Kernel != unix.ByteSliceToString(u.Release[:]) || h.CPUs != runtime.NumCPU() || h.Arch == "" || h.OS == "" || h.CPUModel == "" {
		t.Errorf("facts %+v", h)
	}
	if total := uint64(info.Totalram) * uint64(info.Unit); h.MemoryBytes/1024 != total/1024 {
		t.Errorf("memory %d, want %d (sysinfo)", h.MemoryBytes, total)
	}
	if h.Facts["go.version"] != runtime.Version() || h.Facts["clocksource"] == "" || h.Facts["kernel.cmdline"] == "" {
		t.Errorf("facts %+v", h.Facts)
	}
	for k, v := range h.Facts {
		if v == "" {
			t.Errorf("fact %s is empty", k)
		}
	}
}

func TestStallsSeeTheGapOfABusyCPU(t *testing.T) {
	cpus, err := AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	const watch = 300 * time.Millisecond
	for _, s := range Stalls(cpus, watch) {
		if s.Failed != nil || s.Ran < watch || s.Gap <= 0 || s.Gap > s.Ran {
			t.Errorf("%+v", s)
		}
	}
	// A second spinner on the same CPU takes turns: each sees the other as gaps of scheduler slices.
	cpu := cpus[0]
	both := Stalls([]int{cpu, cpu}, watch)
	if runtime.GOMAXPROCS(0) >= 2 && both[0].Gap < 100*time.Microsecond && both[1].Gap < 100*time.Microsecond {
		t.Errorf("two spinners on CPU %d saw no gap: %+v", cpu, both)
	}
	if s := Stalls([]int{1023}, time.Millisecond)[0]; s.Failed == nil {
		t.Errorf("CPU 1023 was watched: %+v", s)
	}
	after, err := AllowedCPUs()
	if err != nil || !slices.Equal(after, cpus) {
		t.Errorf("affinity went from %v to %v, %v", cpus, after, err)
	}
}
