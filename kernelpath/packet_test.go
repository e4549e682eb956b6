// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// rawFrame builds an IPv4 UDP frame from the peer, without UDP checksum (RFC 768 allows that).
func rawFrame(p *nstest.Pair, dst []byte, vlan bool, proto byte, fragment uint16, port uint16, options int) []byte {
	b := append([]byte{}, dst...)
	b = append(b, p.Peer.MAC...)
	if vlan {
		b = append(b, 0x81, 0x00, 0x20, 0x05) // priority 1, VLAN 5
	}
	b = append(b, 0x08, 0x00)
	ihl := 20 + options
	ip := make([]byte, ihl)
	ip[0] = 0x40 | byte(ihl/4)
	binary.BigEndian.PutUint16(ip[2:], uint16(ihl+8+18))
	binary.BigEndian.PutUint16(ip[6:], fragment)
	ip[8], ip[9] = 64, proto
	src, to := p.Peer.IP4.As4(), p.SUT.IP4.As4()
	copy(ip[12:], src[:])
	copy(ip[16:], to[:])
	for i := 20; i < ihl; i++ {
		ip[i] = 1 // no-operation option
	}
	sum := uint32(0)
	for i := 0; i < ihl; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(ip[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(ip[10:], ^uint16(sum))
	b = append(b, ip...)
	udp := make([]byte, 8+18)
	binary.BigEndian.PutUint16(udp, 10000)
	binary.BigEndian.PutUint16(udp[2:], port)
	binary.BigEndian.PutUint16(udp[4:], 8+18)
	for i := range udp[8:] {
		udp[8+i] = byte(i)
	}
	return append(b, udp...)
}

// sendFrames sends each frame once, as it is, from the peer's device.
func sendFrames(t testing.TB, p *nstest.Pair, frames ...[]byte) {
	t.Helper()
	p.Peer.Do(t, func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		for _, f := range frames {
			if err := unix.Sendto(fd, f, 0, &unix.SockaddrLinklayer{Ifindex: p.Peer.Index, Protocol: htons(unix.ETH_P_IP)}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// lent copies all frames a receiver lends until it has had nothing for a while.
func lent(t testing.TB, r receiver) (frames [][]byte) {
	t.Helper()
	b := make([][]byte, 64)
	for last := time.Now(); time.Since(last) < 200*time.Millisecond; {
		n, err := r.Receive(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range b[:n] {
			frames = append(frames, bytes.Clone(f))
		}
		if n > 0 {
			last = time.Now()
		}
		if err := r.Release(); err != nil {
			t.Fatal(err)
		}
	}
	return frames
}

func openPacket(t testing.TB, p *nstest.Pair, o PacketOptions) receiver {
	t.Helper()
	o.Interface = p.SUT.Name
	return kind{name: "packet", open: func(*nstest.Pair, netip.AddrPort) (receiver, error) { return OpenPacket(o) }}.mustOpen(t, p, o.Local)
}

// The filter must accept what a UDP socket on that address would, and only that.
func TestPacketFilter(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	r := openPacket(t, p, PacketOptions{Local: sutAddr(p, false)})
	plain := rawFrame(p, p.SUT.MAC, false, unix.IPPROTO_UDP, 0x4000, port, 0)
	options := rawFrame(p, p.SUT.MAC, false, unix.IPPROTO_UDP, 0x4000, port, 8)
	elsewhere := bytes.Clone(plain)
	elsewhere[33]++ // last byte of the destination address
	arp := bytes.Clone(plain)
	arp[13] = 6
	sendFrames(t, p, plain,
		rawFrame(p, p.SUT.MAC, false, unix.IPPROTO_UDP, 0, port+1, 0),
		rawFrame(p, p.SUT.MAC, false, unix.IPPROTO_TCP, 0, port, 0),
		rawFrame(p, p.SUT.MAC, false, unix.IPPROTO_UDP, 0x2000+185, port, 0), // a fragment in the middle has no UDP header
		rawFrame(p, p.SUT.MAC, true, unix.IPPROTO_UDP, 0, port, 0),
		elsewhere, arp, plain[:20], options)
	send(t, p, true, 0, 3, 18, 1) // the same port, but IPv6
	got := lent(t, r)
	if len(got) != 2 || !bytes.Equal(got[0], plain) || !bytes.Equal(got[1], options) {
		t.Errorf("%d frames passed the filter, want 2: %x", len(got), got)
	}
	if c := r.Counters(); c["packet.packets"] != 2 {
		t.Errorf("rejected frames are counted: %v", c)
	}
}

// Frames with a VLAN tag must be as long, and as tagged, as they were on the wire: what AF_XDP sees.
func TestPacketPutsTagsBack(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	r := openPacket(t, p, PacketOptions{})
	tagged := rawFrame(p, p.SUT.MAC, true, unix.IPPROTO_UDP, 0, port, 0)
	plain := rawFrame(p, p.SUT.MAC, false, unix.IPPROTO_UDP, 0, port, 0)
	sendFrames(t, p, plain, tagged, plain, tagged)
	got := lent(t, r)
	var ours [][]byte
	for _, f := range got {
		if bytes.Equal(f[6:12], p.Peer.MAC) && len(f) >= 60 && f[len(f)-1] == 17 {
			ours = append(ours, f)
		}
	}
	if len(ours) != 4 || !bytes.Equal(ours[0], plain) || !bytes.Equal(ours[1], tagged) || !bytes.Equal(ours[3], tagged) {
		t.Errorf("got %x\nwant %x and %x in turn", ours, plain, tagged)
	}
	if c := r.Counters(); c["packet.vlan"] != 2 {
		t.Errorf("want 2 tags counted: %v", c)
	}
}

// snmp reads one number of /proc/net/snmp in the SUT's namespace.
func snmp(t testing.TB, p *nstest.Pair, proto, field string) (v uint64) {
	t.Helper()
	p.SUT.Do(t, func() {
		b, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if f[0] != proto+":" {
				continue
			}
			if names == nil {
				names = f
				continue
			}
			for i, name := range names {
				if name == field {
					v, err = strconv.ParseUint(f[i], 10, 64)
					if err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
	return v
}

func deviceReceived(t testing.TB, p *nstest.Pair) (n uint64) {
	t.Helper()
	p.SUT.Do(t, func() {
		l, err := netlink.LinkByName(p.SUT.Name)
		if err != nil {
			t.Fatal(err)
		}
		n = l.Attrs().Statistics.RxPackets
	})
	return n
}

func promiscuity(t testing.TB, p *nstest.Pair) (n int) {
	t.Helper()
	p.SUT.Do(t, func() {
		l, err := netlink.LinkByName(p.SUT.Name)
		if err != nil {
			t.Fatal(err)
		}
		n = l.Attrs().Promisc
	})
	return n
}

// What the documentation says about frames that nobody reads, by destination address and quiet policy.
func TestWhatBecomesOfUnreadFrames(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	foreign, err := parseMAC(ForeignMAC)
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	for _, c := range []struct {
		name              string
		open              func() (receiver, error)
		dst               []byte
		lent              int
		noPorts, overflow uint64 // overflow: at least
	}{
		{"nosocket own", func() (receiver, error) { return OpenNoSocket(NoSocketOptions{Interface: p.SUT.Name}) }, p.SUT.MAC, 0, n, 0},
		{"nosocket foreign", func() (receiver, error) { return OpenNoSocket(NoSocketOptions{Interface: p.SUT.Name}) }, foreign, 0, 0, 0},
		{"packet own", func() (receiver, error) {
			return OpenPacket(PacketOptions{Interface: p.SUT.Name, Local: sutAddr(p, false)})
		}, p.SUT.MAC, n, n, 0},
		{"packet own quiet", func() (receiver, error) {
			return OpenPacket(PacketOptions{Interface: p.SUT.Name, Local: sutAddr(p, false), Quiet: QuietSocket})
		}, p.SUT.MAC, n, 0, n - 50},
		{"packet foreign", func() (receiver, error) {
			return OpenPacket(PacketOptions{Interface: p.SUT.Name, Local: sutAddr(p, false), Promiscuous: true})
		}, foreign, n, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := kind{name: c.name, open: func(*nstest.Pair, netip.AddrPort) (receiver, error) { return c.open() }}.mustOpen(t, p, netip.AddrPort{})
			if want := r.Effective().Promiscuous; (promiscuity(t, p) > 0) != want {
				t.Errorf("promiscuous: want %v", want)
			}
			rx, noPorts, overflow, icmp := deviceReceived(t, p), snmp(t, p, "Udp", "NoPorts"), snmp(t, p, "Udp", "RcvbufErrors"), snmp(t, p, "Icmp", "OutMsgs")
			f := rawFrame(p, c.dst, false, unix.IPPROTO_UDP, 0x4000, port, 0)
			frames := make([][]byte, n)
			for i := range frames {
				frames[i] = f
			}
			sendFrames(t, p, frames...)
			if got := len(lent(t, r)); got != c.lent {
				t.Errorf("%d frames lent, want %d", got, c.lent)
			}
			if got := deviceReceived(t, p) - rx; got < n {
				t.Errorf("the device counted %d, want %d or (neighbour discovery) a few more", got, n)
			}
			if got := snmp(t, p, "Udp", "NoPorts") - noPorts; got != c.noPorts {
				t.Errorf("NoPorts went up by %d, want %d", got, c.noPorts)
			}
			if got := snmp(t, p, "Udp", "RcvbufErrors") - overflow; got < c.overflow || (c.overflow == 0 && got != 0) {
				t.Errorf("RcvbufErrors went up by %d, want %d or more", got, c.overflow)
			}
			if got := snmp(t, p, "Icmp", "OutMsgs") - icmp; got > c.noPorts { // at most: they are rate-limited
				t.Errorf("%d ICMP messages went out with %d unreachable ports", got, c.noPorts)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			if n := promiscuity(t, p); n != 0 {
				t.Errorf("still promiscuous (%d) after Close", n)
			}
		})
	}
}

func parseMAC(s string) ([]byte, error) {
	var b [6]byte
	_, err := fmt.Sscanf(s, "%02x:%02x:%02x:%02x:%02x:%02x", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5])
	return b[:], err
}

// Frames are told by the beginning of their source MAC address, and of several rings of a group each frame is in one.
func TestPacketSourceMACAndFanout(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	mark := []byte{2, 0xab, 0xcd}
	var rings []*Packet
	for range 2 {
		p.SUT.Do(t, func() {
			r, err := OpenPacket(PacketOptions{Interface: p.SUT.Name, SourceMAC: mark, Fanout: 77, Timeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			rings = append(rings, r)
		})
	}
	const ours = 200
	p.Peer.Do(t, func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		to := &unix.SockaddrLinklayer{Ifindex: p.Peer.Index}
		for i := range 2 * ours {
			f := make([]byte, 60)
			copy(f, p.SUT.MAC)
			copy(f[6:], mark)
			f[8] ^= byte(i & 1) // every second one is somebody else's
			f[12], f[13] = 0x88, 0xb5
			if err := unix.Sendto(fd, f, 0, to); err != nil {
				t.Fatal(err)
			}
		}
	})
	got, strangers := 0, 0
	b := make([][]byte, 64)
	for idle := 0; idle < 6; {
		n := 0
		for _, r := range rings {
			k, err := r.Receive(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range b[:k] {
				if [3]byte(f[6:9]) != [3]byte(mark) {
					strangers++
				}
			}
			n += k
		}
		got += n
		if idle++; n > 0 {
			idle = 0
		}
	}
	if got != ours || strangers != 0 {
		t.Errorf("%d frames in both rings, %d of strangers, want %d and none", got, strangers, ours)
	}
	for _, o := range []PacketOptions{{Interface: "x", SourceMAC: make([]byte, 7)}, {Interface: "x", SourceMAC: mark, Local: sutAddr(p, false)}} {
		if err := o.complete(); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}
