// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func loopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port)
}

// Wrong options are refused by name, before anything is opened.
func TestOptionsAreNamed(t *testing.T) {
	ok := Socket{Local: loopback(0)}
	with := func(change func(*Socket)) Socket { s := ok; change(&s); return s }
	packet := func(change func(*PacketOptions)) PacketOptions {
		o := PacketOptions{Interface: "no-such-device"}
		change(&o)
		return o
	}
	for _, c := range []struct {
		field string
		try   func() error
	}{
		{"Local", func() error { _, err := OpenEpoll(EpollOptions{}); return err }},
		{"Local", func() error { _, err := OpenRecvmmsg(RecvmmsgOptions{}); return err }},
		{"Local", func() error {
			_, err := OpenEpoll(EpollOptions{with(func(s *Socket) { s.Local = netip.MustParseAddrPort("[::ffff:127.0.0.1]:0") })})
			return err
		}},
		{"Batch", func() error { _, err := OpenEpoll(EpollOptions{with(func(s *Socket) { s.Batch = -1 })}); return err }},
		{"Batch", func() error {
			_, err := OpenRecvmmsg(RecvmmsgOptions{Socket: with(func(s *Socket) { s.Batch = 1025 })})
			return err
		}},
		{"Buffer", func() error {
			_, err := OpenEpoll(EpollOptions{with(func(s *Socket) { s.Buffer = 1 << 17 })})
			return err
		}},
		{"Rcvbuf", func() error { _, err := OpenEpoll(EpollOptions{with(func(s *Socket) { s.Rcvbuf = -1 })}); return err }},
		{"Timeout", func() error {
			_, err := OpenEpoll(EpollOptions{with(func(s *Socket) { s.Timeout = time.Microsecond })})
			return err
		}},
		{"Timeout", func() error {
			_, err := OpenEpoll(EpollOptions{with(func(s *Socket) { s.Timeout = -time.Second })})
			return err
		}},
		{"Wait", func() error { _, err := OpenRecvmmsg(RecvmmsgOptions{Socket: ok, Wait: 9}); return err }},
		{"BusyPoll", func() error {
			_, err := OpenRecvmmsg(RecvmmsgOptions{Socket: ok, BusyPoll: time.Millisecond})
			return err
		}},
		{"BusyPoll", func() error {
			_, err := OpenRecvmmsg(RecvmmsgOptions{Socket: ok, Wait: WaitBusyPoll, BusyPoll: 1500})
			return err
		}},
		{"BusyPollBudget", func() error {
			_, err := OpenRecvmmsg(RecvmmsgOptions{Socket: ok, Wait: WaitSpin, BusyPollBudget: 8})
			return err
		}},
		{"BusyPollBudget", func() error {
			_, err := OpenRecvmmsg(RecvmmsgOptions{Socket: ok, Wait: WaitBusyPoll, BusyPollBudget: -8})
			return err
		}},
		{"workers", func() error { _, err := OpenReuseport(RecvmmsgOptions{Socket: ok}, 0); return err }},
		{"Interface", func() error { _, err := OpenPacket(PacketOptions{}); return err }},
		{"Interface", func() error { _, err := OpenNoSocket(NoSocketOptions{}); return err }},
		{"Timeout", func() error {
			_, err := OpenNoSocket(NoSocketOptions{Interface: "x", Timeout: 1})
			return err
		}},
		{"Local", func() error {
			_, err := OpenPacket(packet(func(o *PacketOptions) { o.Local = loopback(0) }))
			return err
		}},
		{"Batch", func() error { _, err := OpenPacket(packet(func(o *PacketOptions) { o.Batch = -1 })); return err }},
		{"Ring.BlockBytes", func() error {
			_, err := OpenPacket(packet(func(o *PacketOptions) { o.Ring.BlockBytes = 5000 }))
			return err
		}},
		{"Ring.Blocks", func() error { _, err := OpenPacket(packet(func(o *PacketOptions) { o.Ring.Blocks = 1 })); return err }},
		{"Ring.Retire", func() error {
			_, err := OpenPacket(packet(func(o *PacketOptions) { o.Ring.Retire = time.Microsecond }))
			return err
		}},
		{"Quiet", func() error { _, err := OpenPacket(packet(func(o *PacketOptions) { o.Quiet = 7 })); return err }},
		{"Quiet", func() error {
			_, err := OpenPacket(packet(func(o *PacketOptions) { o.Quiet = QuietSocket }))
			return err
		}},
	} {
		err := c.try()
		if err == nil || !strings.HasPrefix(err.Error(), "options: "+c.field+":") {
			t.Errorf("%s: got %v", c.field, err)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	first, err := OpenEpoll(EpollOptions{Socket{Local: loopback(0)}})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	for _, c := range []struct {
		errno unix.Errno
		hint  string
		try   func() error
	}{
		{unix.EADDRINUSE, "ss -lunp", func() error {
			_, err := OpenRecvmmsg(RecvmmsgOptions{Socket: Socket{Local: first.Effective().Local}})
			return err
		}},
		{unix.EADDRNOTAVAIL, "ip address", func() error {
			_, err := OpenRecvmmsg(RecvmmsgOptions{Socket: Socket{Local: netip.MustParseAddrPort("192.0.2.1:9000")}})
			return err
		}},
		{unix.ENODEV, "ip link", func() error {
			_, err := OpenPacket(PacketOptions{Interface: "no-such-device"})
			return err
		}},
		{unix.ENODEV, "ip link", func() error {
			_, err := OpenNoSocket(NoSocketOptions{Interface: "no-such-device"})
			return err
		}},
		{unix.EPERM, "root", func() error { return explain("open packet socket", unix.EPERM) }},
	} {
		err := c.try()
		if !errors.Is(err, c.errno) || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("want %v with %q, got %v", c.errno, c.hint, err)
		}
	}
}

// A constructor that fails half way must leave no descriptor behind.
func TestFailedOpenLeaksNothing(t *testing.T) {
	before := descriptors(t)
	for range 10 {
		if _, err := OpenRecvmmsg(RecvmmsgOptions{Socket: Socket{Local: netip.MustParseAddrPort("192.0.2.1:9000")}}); err == nil {
			t.Fatal("bound to an address that is not ours")
		}
		if _, err := OpenPacket(PacketOptions{Interface: "no-such-device"}); err == nil {
			t.Fatal("opened a device that is not there")
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors open, %d before", after, before)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	d, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(d)
}

func TestNamesGoBothWays(t *testing.T) {
	for _, w := range []Wait{WaitDefault, WaitBlock, WaitBusyPoll, WaitSpin} {
		if got, err := ParseWait(w.String()); got != w || err != nil {
			t.Errorf("%v: %v, %v", w, got, err)
		}
	}
	if _, err := ParseWait("nap"); err == nil {
		t.Error("nap is not a policy")
	}
	e := Effective{Receiver: "packet", Wait: WaitSpin, Quiet: QuietSocket, Local: loopback(9000)}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back Effective
	if err := json.Unmarshal(b, &back); err != nil || back != e {
		t.Errorf("%s came back as %+v, %v", b, back, err)
	}
	if !strings.Contains(string(b), `"wait":"spin"`) || !strings.Contains(string(b), `"quiet":"socket"`) {
		t.Errorf("names are missing in %s", b)
	}
}

func TestWrappingCounter(t *testing.T) {
	var w wrapping
	for _, c := range []struct {
		see  uint32
		want uint64
	}{{5, 5}, {5, 5}, {1<<32 - 1, 1<<32 - 1}, {3, 1<<32 + 3}} {
		if got := w.see(c.see); got != c.want {
			t.Errorf("after %d: %d, want %d", c.see, got, c.want)
		}
	}
}
