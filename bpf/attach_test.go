// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

func newTestPass(t *testing.T, frags bool) *Pass {
	t.Helper()
	nstest.Root(t)
	p, err := NewPass(frags)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestAttachAndDetach(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	prog := newTestPass(t, false)
	p.SUT.Do(t, func() {
		for _, mode := range []Mode{Native, Generic, Native} {
			l, err := Attach(prog.Program(), p.SUT.Index, mode)
			if err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
			info, err := prog.Program().Info()
			if err != nil {
				t.Fatal(err)
			}
			id, _ := info.ID()
			there, err := Attached(p.SUT.Index)
			if err != nil || len(there) != 1 || there[0] != (AttachedProgram{ProgID: uint32(id), Mode: mode}) {
				t.Errorf("%s: attached %v, %v, want program %d", mode, there, err, id)
			}
			if l.Mode() != mode || l.IfIndex() != p.SUT.Index {
				t.Errorf("link says %s on %d", l.Mode(), l.IfIndex())
			}
			for range 2 {
				if err := l.Close(); err != nil {
					t.Errorf("%s: close: %v", mode, err)
				}
			}
			if there, err := Attached(p.SUT.Index); err != nil || len(there) != 0 {
				t.Errorf("%s: still attached: %v, %v", mode, there, err)
			}
		}
	})
}

// What is attached already stays, whoever put it there and in whatever mode, and is named.
func TestAttachNeverReplaces(t *testing.T) {
	nstest.Root(t)
	for _, first := range []Mode{Native, Generic} {
		for _, second := range []Mode{Native, Generic} {
			t.Run(first.String()+" then "+second.String(), func(t *testing.T) {
				p := nstest.NewPair(t, nstest.Options{})
				a, b := newTestPass(t, false), newTestPass(t, false)
				p.SUT.Do(t, func() {
					l, err := Attach(a.Program(), p.SUT.Index, first)
					if err != nil {
						t.Fatal(err)
					}
					defer l.Close()
					before, err := Attached(p.SUT.Index)
					if err != nil || len(before) != 1 {
						t.Fatalf("attached %v, %v", before, err)
					}
					_, err = Attach(b.Program(), p.SUT.Index, second)
					var foreign *ForeignProgramError
					if !errors.As(err, &foreign) {
						t.Fatalf("second attach: %v", err)
					}
					if foreign.ProgID != before[0].ProgID || foreign.Mode != first || foreign.Name != "pass" ||
						len(foreign.Tag) != 16 || foreign.IfIndex != p.SUT.Index || foreign.Interface != "sut0" {
						t.Errorf("error %+v", foreign)
					}
					if len(foreign.Owner) != 1 || foreign.Owner[0].PID != os.Getpid() || foreign.Owner[0].Comm == "" {
						t.Errorf("owner %v, want this process, %d", foreign.Owner, os.Getpid())
					}
					if !strings.Contains(err.Error(), foreign.Owner[0].Comm) || !strings.Contains(err.Error(), foreign.Tag) {
						t.Errorf("message %q", err)
					}
					if after, err := Attached(p.SUT.Index); err != nil || len(after) != 1 || after[0] != before[0] {
						t.Errorf("attached now: %v, %v, before %v", after, err, before)
					}
				})
			})
		}
	}
}

// A program attached the old way, by netlink, is as safe.
func TestAttachNeverReplacesNetlink(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	a, b := newTestPass(t, false), newTestPass(t, false)
	p.SUT.Do(t, func() {
		l, err := netlink.LinkByName(p.SUT.Name)
		if err != nil {
			t.Fatal(err)
		}
		if err := netlink.LinkSetXdpFdWithFlags(l, a.Program().FD(), int(link.XDPDriverMode)); err != nil {
			t.Fatal(err)
		}
		before, err := Attached(p.SUT.Index)
		if err != nil || len(before) != 1 {
			t.Fatalf("attached %v, %v", before, err)
		}
		for _, mode := range []Mode{Native, Generic} {
			_, err = Attach(b.Program(), p.SUT.Index, mode)
			var foreign *ForeignProgramError
			if !errors.As(err, &foreign) || foreign.ProgID != before[0].ProgID {
				t.Errorf("%s: %v", mode, err)
			}
		}
		if after, err := Attached(p.SUT.Index); err != nil || len(after) != 1 || after[0] != before[0] {
			t.Errorf("attached now: %v, %v, before %v", after, err, before)
		}
	})
}

func TestAttachMTU(t *testing.T) {
	limit := nativeMTULimit("veth")
	for _, c := range []struct {
		mtu   int
		mode  Mode
		frags bool
		ok    bool
	}{{limit, Native, false, true}, {limit + 1, Native, false, false}, {9000, Native, false, false},
		{9000, Native, true, true}, {9000, Generic, false, true}} {
		p := nstest.NewPair(t, nstest.Options{MTU: c.mtu})
		prog := newTestPass(t, c.frags)
		p.SUT.Do(t, func() {
			l, err := Attach(prog.Program(), p.SUT.Index, c.mode)
			if err == nil {
				defer l.Close()
			}
			var mtu *MTUError
			switch {
			case c.ok && err != nil:
				t.Errorf("%+v: %v", c, err)
			case !c.ok && !errors.As(err, &mtu):
				t.Errorf("%+v: %v, want an MTU error", c, err)
			case !c.ok && (mtu.MTU != c.mtu || mtu.Limit != limit || mtu.Name != "sut0" || mtu.Mode != Native):
				t.Errorf("%+v: %+v", c, mtu)
			case !c.ok:
				if !strings.Contains(mtu.Kernel, "MTU") {
					t.Errorf("the kernel's sentence is missing: %v", err)
				}
				var a *AttachError
				if !errors.As(err, &a) {
					t.Errorf("%v is no AttachError", err)
				}
				t.Log(err)
			}
		})
	}
}

func TestAttachRefusals(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 1, PeerQueues: 4})
	prog := newTestPass(t, false)
	p.SUT.Do(t, func() {
		const loopback = 1
		_, err := Attach(prog.Program(), loopback, Native)
		var native *NativeUnsupportedError
		if !errors.As(err, &native) || !errors.Is(err, unix.EOPNOTSUPP) {
			t.Errorf("loopback: %v", err)
		}
		t.Log(err)

		_, err = Attach(prog.Program(), p.SUT.Index, Native)
		var a *AttachError
		if !errors.As(err, &a) || !strings.Contains(a.Kernel, "queue") {
			t.Errorf("more queues at the other end: %v", err)
		}
		t.Log(err)

		if _, err := Attach(prog.Program(), 9999, Native); !errors.As(err, &a) {
			t.Errorf("no such interface: %v", err)
		}
		if _, err := Attach(prog.Program(), p.SUT.Index, Offload); err == nil {
			t.Error("offload was accepted")
		}
		if _, err := Attached(9999); !errors.Is(err, unix.ENODEV) {
			t.Errorf("query of no such interface: %v", err)
		}
	})
}

// The attachment ends with its link even when the program is closed first.
func TestLinkHoldsProgram(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	prog := newTestPass(t, false)
	p.SUT.Do(t, func() {
		l, err := Attach(prog.Program(), p.SUT.Index, Native)
		if err != nil {
			t.Fatal(err)
		}
		if err := prog.Close(); err != nil {
			t.Error(err)
		}
		if there, err := Attached(p.SUT.Index); err != nil || len(there) != 1 {
			t.Errorf("after closing the program: %v, %v", there, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if there, err := Attached(p.SUT.Index); err != nil || len(there) != 0 {
			t.Errorf("after closing the link: %v, %v", there, err)
		}
	})
}

func TestDescribe(t *testing.T) {
	prog := newTestPass(t, false)
	info, err := prog.Program().Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	d := Describe(uint32(id))
	if d.Name != "pass" || d.Tag != info.Tag || len(d.Owner) != 1 || d.Owner[0].PID != os.Getpid() {
		t.Errorf("described as %+v", d)
	}
	if s := d.String(); !strings.Contains(s, d.Owner[0].Comm) {
		t.Errorf("text %q", s)
	}
}

func TestProbes(t *testing.T) {
	probes := map[string]func() error{"XDP": ProbeXDP, "XSKMap": ProbeXSKMap, "Frags": ProbeFrags, "BTF": ProbeBTF,
		"XDPLink": ProbeXDPLink, "LiveFrames": ProbeLiveFrames}
	if os.Geteuid() != 0 {
		// Without privilege a probe must not claim that the kernel lacks the feature.
		for name, probe := range probes {
			if err := probe(); errors.Is(err, ErrNotSupported) {
				t.Errorf("%s without privilege: %v", name, err)
			}
		}
		return
	}
	for name, probe := range probes {
		if err := probe(); err != nil {
			t.Errorf("%s: %v; this kernel has it", name, err)
		}
	}
	if _, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Flags: 1 << 31}); err == nil {
		t.Error("the kernel takes any flag: ProbeFrags proves nothing")
	}
}

func TestNestedAttributes(t *testing.T) {
	for _, b := range [][]byte{nil, {8}, {8, 0, 4}, {3, 0, 4, 0}, {9, 0, 4, 0, 1, 2, 3, 4}, {255, 255, 4, 0}} {
		nested(b, func(typ uint16, v []byte) { t.Errorf("% x: attribute %d, % x", b, typ, v) })
	}
	var got []uint16
	nested([]byte{5, 0, 1, 0x80, 7, 0, 0, 0, 4, 0, 2, 0}, func(typ uint16, v []byte) { got = append(got, typ, uint16(len(v))) })
	if len(got) != 4 || got[0] != 1 || got[1] != 1 || got[2] != 2 || got[3] != 0 {
		t.Errorf("got %v", got)
	}
}

func FuzzNestedAttributes(f *testing.F) {
	f.Add([]byte{8, 0, 5, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		parseXDP(b)
		total := 0
		nested(b, func(_ uint16, v []byte) { total += len(v) + 4 })
		if total > len(b) {
			t.Errorf("attributes of %d bytes in %d", total, len(b))
		}
	})
}
