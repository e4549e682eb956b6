// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

func TestOptionsAreCheckedBeforeAnySystemCall(t *testing.T) {
	dev := func(change func(*Options)) Options {
		// No such device: had a system call been made first, the error would be another.
		o := Options{Device: "nosuchdevice0"}
		change(&o)
		return o
	}
	for _, c := range []struct {
		field string
		o     Options
	}{
		{"Device", Options{}},
		{"Ifindex", Options{Ifindex: -1}},
		{"Queue", dev(func(o *Options) { o.Queue = -1 })},
		{"Bind", dev(func(o *Options) { o.Bind = 3 })},
		{"Attach", dev(func(o *Options) { o.Attach = -1 })},
		{"Wait", dev(func(o *Options) { o.Wait = 9 })},
		{"Order", dev(func(o *Options) { o.Order = 2 })},
		{"BusyPoll", dev(func(o *Options) { o.BusyPoll = time.Microsecond })},
		{"BusyPoll", dev(func(o *Options) { o.Wait, o.BusyPoll = BusyPoll, 1500 })},
		{"BusyPollBudget", dev(func(o *Options) { o.Wait, o.BusyPollBudget = BusyPoll, 1<<16 })},
		{"RxRing", dev(func(o *Options) { o.RxRing = 100 })},
		{"RxRing", dev(func(o *Options) { o.RxRing = 1 << 17 })},
		{"RxRing", dev(func(o *Options) { o.RxRing, o.TxRing = None, None })},
		{"TxRing", dev(func(o *Options) { o.TxRing = -2 })},
		{"FillRing", dev(func(o *Options) { o.FillRing = None })},
		{"CompletionRing", dev(func(o *Options) { o.CompletionRing = 3 })},
		{"RxFrames", dev(func(o *Options) { o.FillRing, o.RxFrames = 64, 65 })},
		{"RxFrames", dev(func(o *Options) { o.RxFrames = -1 })},
		{"TxFrames", dev(func(o *Options) { o.TxRing, o.CompletionRing, o.TxFrames = 128, 64, 65 })},
		{"TxFrames", dev(func(o *Options) { o.TxRing, o.TxFrames = None, 1 })},
		{"TxBudget", dev(func(o *Options) { o.TxBudget = 31 })},
		{"TxBudget", dev(func(o *Options) { o.TxRing, o.TxBudget = 64, 65 })},
		{"ChunkSize", dev(func(o *Options) { o.ChunkSize = 1000 })},
		{"ChunkSize", dev(func(o *Options) { o.ChunkSize = 1024 })},
		{"ChunkSize", dev(func(o *Options) { o.ChunkSize = 8192 })},
		{"ChunkSize", dev(func(o *Options) { o.UMEM, o.ChunkSize = &UMEM{}, 2048 })},
		{"Headroom", dev(func(o *Options) { o.ChunkSize, o.Headroom = 2048, 1792 })},
		{"Headroom", dev(func(o *Options) { o.Headroom = -1 })},
		{"HugePages", dev(func(o *Options) { o.HugePages = 3 })},
	} {
		_, err := Open(c.o)
		var oe *OptionError
		if !errors.As(err, &oe) || oe.Field != c.field || !strings.Contains(err.Error(), c.field) {
			t.Errorf("want a complaint about %s, got %v", c.field, err)
		}
	}
	if _, err := NewUMEM(UMEMOptions{}); err == nil || !strings.Contains(err.Error(), "Frames") {
		t.Errorf("UMEM of no frames: %v", err)
	}
}

// What the checks refuse the kernel refuses too, and the limits they allow it accepts: the checks are neither lax nor strict.
func TestLimitsAreTheKernels(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, o := range []Options{
		{RxRing: 1 << 16, TxRing: 1 << 16, ChunkSize: 2048, RxFrames: 64, TxFrames: 64},
		{RxRing: 1, TxRing: 1, FillRing: 1},
		{ChunkSize: 2048, Headroom: 1344, RxRing: 64},
		{TxRing: None}, {RxRing: None},
	} {
		s, err := tryOpen(t, p.SUT, o)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	u, err := NewUMEM(UMEMOptions{Frames: 64})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	for _, bad := range []struct{ chunk, headroom uint32 }{{1000, 0}, {1024, 0}, {3000, 0}, {8192, 0}, {2048, 1792}, {4096, 3840}} {
		if err := sysRegister(fd, u.mem, bad.chunk, bad.headroom); !errors.Is(err, unix.EINVAL) {
			t.Errorf("chunk %d, headroom %d: kernel says %v", bad.chunk, bad.headroom, err)
		}
	}
	// Between the old limit and the new one it depends on the kernel; if it refuses, it must be clear what.
	s, err := tryOpen(t, p.SUT, Options{ChunkSize: 2048, Headroom: 1700, RxRing: 64})
	var oe *OptionError
	switch {
	case err == nil:
		s.Close()
	case !errors.As(err, &oe) || oe.Field != "Headroom" || !errors.Is(err, unix.EINVAL):
		t.Errorf("headroom 1700: %v", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_XDP, unix.XDP_RX_RING, 100); !errors.Is(err, unix.EINVAL) {
		t.Errorf("ring of 100: kernel says %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	for _, c := range []struct {
		name  string
		o     Options
		is    []error
		words []string
	}{
		{"zero-copy on veth", Options{Bind: ZeroCopy}, []error{ErrNoZeroCopy, unix.EOPNOTSUPP}, []string{"sut0", "queue 0"}},
		{"wrong queue", Options{Queue: 2}, []error{ErrNoQueue, unix.EINVAL}, []string{"sut0", "queue 2", "has 2"}},
		{"wrong device", Options{Device: "nosuchdevice0"}, nil, []string{"nosuchdevice0"}},
		{"disagreeing index", Options{Ifindex: 9999}, nil, []string{"Ifindex", "9999"}},
	} {
		s, err := tryOpen(t, p.SUT, c.o)
		if err == nil {
			s.Close()
			t.Errorf("%s: opened", c.name)
			continue
		}
		for _, want := range c.is {
			if !errors.Is(err, want) {
				t.Errorf("%s: %v is not %v", c.name, err, want)
			}
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not say %q", c.name, err, w)
			}
		}
	}
}

func TestSecondOwner(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	openAt(t, p.SUT, Options{Queue: 1})
	start := time.Now()
	s, err := tryOpen(t, p.SUT, Options{Queue: 1, BindTimeout: 100 * time.Millisecond})
	if err == nil {
		s.Close()
		t.Fatal("queue has two owners")
	}
	if !errors.Is(err, ErrInUse) || !errors.Is(err, unix.EBUSY) {
		t.Errorf("%v is not ErrInUse and EBUSY", err)
	}
	for _, w := range []string{"sut0", "queue 1", "already in use"} {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
	if d := time.Since(start); d < 50*time.Millisecond {
		t.Errorf("gave up after %v, told to retry for 100 ms", d)
	}
	openAt(t, p.SUT, Options{Queue: 0}) // the other queue is free
}

// The kernel gives a queue up only some time after Close; and if a ring were left mapped, never.
func TestReopenSameQueue(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	r := attach(t, p.SUT, link.XDPDriverMode, false)
	ps := newPacketSocket(t, p.Peer)
	before := len(descriptors(t))
	for i := range 20 {
		s, err := tryOpen(t, p.SUT, Options{RxRing: 64, TxRing: 64})
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		r.add(t, s)
		ps.send(i*10, 10, 60)
		exactly(t, collect(t, s, 10), i*10, 10)
		transmit(t, s, 0, 10, 60)
		if err := s.Close(); err != nil {
			t.Fatalf("round %d: close: %v", i, err)
		}
	}
	if after := len(descriptors(t)); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err != nil || strings.Contains(string(maps), "socket:") {
		t.Errorf("rings still mapped (%v)", err)
	}
}

func descriptors(t *testing.T) []os.DirEntry {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A failed Open leaves nothing behind, wherever it fails.
func TestFailedOpenLeavesNothing(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	openAt(t, p.SUT, Options{})
	before := len(descriptors(t))
	for _, o := range []Options{{BindTimeout: -1}, {BindTimeout: -1, Queue: 7}, {BindTimeout: 30 * time.Millisecond}} {
		if s, err := tryOpen(t, p.SUT, o); err == nil {
			s.Close()
			t.Errorf("%+v: opened", o)
		}
	}
	if after := len(descriptors(t)); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if n := strings.Count(string(maps), "socket:"); err != nil || n != 4 {
		t.Errorf("%d rings mapped, want the 4 of the socket that is open (%v)", n, err)
	}
}

func TestStrict(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	// Without reserved huge pages a UMEM of 8 MiB cannot have what Auto tries for.
	s, err := tryOpen(t, p.SUT, Options{Strict: true, RxRing: 1024, TxRing: None})
	switch {
	case err == nil:
		if s.Mode().Obtained.HugePages != HugeRequire {
			t.Error("strict, but normal pages")
		}
		s.Close()
	case !errors.Is(err, ErrDowngraded) || !strings.Contains(err.Error(), "HugePages"):
		t.Error(err)
	}
	s = openAt(t, p.SUT, Options{Strict: true, HugePages: HugeNever, Attach: Generic})
	if m := s.Mode(); len(m.Downgrades()) != 0 || m.Obtained.Bind != Copy || m.Obtained.HugePages != HugeNever || m.Obtained.Attach != Generic || !m.Obtained.NeedWakeup {
		t.Errorf("mode %+v", m)
	}
	if str := s.Mode().String(); !strings.Contains(str, "copy (asked auto)") {
		t.Errorf("mode prints as %q", str)
	}
}

func TestDowngradesNamesTheBudget(t *testing.T) {
	m := Mode{Requested: Settings{TxBudget: 64}, Obtained: Settings{TxBudget: 32}}
	if d := m.Downgrades(); len(d) != 1 || !strings.Contains(d[0], "TxBudget") {
		t.Errorf("downgrades %q", d)
	}
}

func TestHugePages(t *testing.T) {
	u, err := NewUMEM(UMEMOptions{Frames: 1024, HugePages: HugeRequire})
	if err != nil {
		if !errors.Is(err, unix.ENOMEM) || !errors.Is(err, ErrNoHugePages) {
			t.Errorf("without huge pages: %v", err)
		}
		u, err = NewUMEM(UMEMOptions{Frames: 1024})
		if err != nil || u.huge {
			t.Fatalf("auto, with none to be had: huge %v, %v", u.huge, err)
		}
	} else if !u.huge {
		t.Error("huge pages obtained but not reported")
	}
	if err := errors.Join(u.Close(), u.Close()); err != nil {
		t.Error(err)
	}
}

func TestGenericAttach(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	r := attach(t, p.SUT, link.XDPGenericMode, false)
	s := openAt(t, p.SUT, Options{Attach: Generic, RxRing: 16, FillRing: 64})
	r.add(t, s)
	ps := newPacketSocket(t, p.Peer)
	ps.send(0, 10, 60)
	exactly(t, collect(t, s, 10), 0, 10)
	before := deviceCounters(t, p.SUT)
	ps.send(10, 40, 60)
	waitFor(t, "40 frames delivered or dropped", func() bool { return stats(t, s).RxRingFull == 24 })
	// In generic mode the device does not count what the socket lost.
	if d := deviceCounters(t, p.SUT).RxDropped - before.RxDropped; d != 0 {
		t.Errorf("device rx_dropped rose by %d, want 0", d)
	}
}

func TestProbe(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	byName := func(device string, queue int) map[string]Finding {
		m := map[string]Finding{}
		p.SUT.Do(t, func() {
			for _, f := range Probe(device, queue) {
				m[f.Feature] = f
			}
		})
		return m
	}
	got := byName("sut0", 0)
	for feature, want := range map[string]Answer{FeatureSocket: Yes, FeatureUMEM: Yes, FeatureBind: Yes, FeatureNeedWakeup: Yes, FeatureZeroCopy: No} {
		if f := got[feature]; f.Answer != want || (f.Why == nil) != (want == Yes) {
			t.Errorf("%s: %v (%v), want %v", feature, f.Answer, f.Why, want)
		}
	}
	for _, feature := range []string{FeatureMulti, FeatureTxBudget, FeatureBusyPoll, FeatureHugePages} {
		if f, ok := got[feature]; !ok || f.Answer == Unknown {
			t.Errorf("%s: %v (%v), want yes or no", feature, f.Answer, f.Why)
		}
	}
	// A queue that is not there says nothing about features.
	if f := byName("sut0", 5)[FeatureNeedWakeup]; f.Answer != Unknown {
		t.Errorf("need_wakeup on a queue that does not exist: %v (%v)", f.Answer, f.Why)
	}
	if f := byName("lo", 0)[FeatureBind]; f.Answer != Yes {
		t.Errorf("bind on lo: %v (%v)", f.Answer, f.Why)
	}
}

func TestWithoutPrivilege(t *testing.T) {
	if os.Geteuid() != 0 {
		_, err := Open(Options{Device: "lo", RxRing: 64, TxRing: 64})
		if !errors.Is(err, os.ErrPermission) || !errors.Is(err, unix.EPERM) {
			t.Errorf("open without privilege: %v", err)
		}
		return
	}
	// As root, run this test again as nobody.
	cmd := nstest.Unprivileged(t, exec.Command("/proc/self/exe", "-test.run", "^TestWithoutPrivilege$", "-test.v"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS") {
		t.Errorf("as nobody: %v\n%s", err, out)
	}
}
