// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"encoding/binary"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// receiver is the shape the caller's loop expects of every engine.
type receiver interface {
	Receive(b [][]byte) (int, error)
	Release() error
	Queued() (uint64, error)
	Counters() map[string]uint64
	Effective() Effective
	Wake() error
	Close() error
}

var (
	_ receiver = (*Epoll)(nil)
	_ receiver = (*Recvmmsg)(nil)
	_ receiver = (*Packet)(nil)
	_ receiver = (*NoSocket)(nil)
)

const port = 9000

func sutAddr(p *nstest.Pair, v6 bool) netip.AddrPort {
	if v6 {
		return netip.AddrPortFrom(p.SUT.IP6, port)
	}
	return netip.AddrPortFrom(p.SUT.IP4, port)
}

// kind is one receiver under test.
type kind struct {
	name   string
	frames bool // lends Ethernet frames, not payloads
	open   func(p *nstest.Pair, local netip.AddrPort) (receiver, error)
}

func recvmmsgKind(name string, o RecvmmsgOptions) kind {
	return kind{name: name, open: func(_ *nstest.Pair, local netip.AddrPort) (receiver, error) {
		o.Local = local
		return OpenRecvmmsg(o)
	}}
}

func kinds() []kind {
	return []kind{
		{name: "epoll", open: func(_ *nstest.Pair, local netip.AddrPort) (receiver, error) {
			return OpenEpoll(EpollOptions{Socket: Socket{Local: local}})
		}},
		recvmmsgKind("recvmmsg", RecvmmsgOptions{}),
		recvmmsgKind("recvmmsg+busypoll", RecvmmsgOptions{Wait: WaitBusyPoll}),
		recvmmsgKind("recvmmsg+spin", RecvmmsgOptions{Wait: WaitSpin}),
		recvmmsgKind("recvmmsg+gro", RecvmmsgOptions{GRO: true}),
		{name: "packet", frames: true, open: func(p *nstest.Pair, local netip.AddrPort) (receiver, error) {
			return OpenPacket(PacketOptions{Interface: p.SUT.Name, Local: local, Quiet: QuietSocket})
		}},
	}
}

// open opens a receiver in the SUT's namespace and closes it when the test ends.
func (k kind) mustOpen(t testing.TB, p *nstest.Pair, local netip.AddrPort) (r receiver) {
	t.Helper()
	var err error
	p.SUT.Do(t, func() { r, err = k.open(p, local) })
	if err != nil {
		t.Fatalf("open %s: %v", k.name, err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// mustSender opens a socket at the peer whose source port is that of the flow. The caller closes it.
func mustSender(t testing.TB, p *nstest.Pair, v6 bool, flow int) (fd int, to unix.Sockaddr) {
	t.Helper()
	from := netip.AddrPortFrom(p.Peer.IP4, uint16(10000+flow))
	if v6 {
		from = netip.AddrPortFrom(p.Peer.IP6, uint16(10000+flow))
	}
	var err error
	p.Peer.Do(t, func() {
		var s *socket
		if s, err = openSocket(&Socket{Local: from, Rcvbuf: 4096}, 0); err == nil {
			fd = s.fd
			err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 8<<20)
		}
	})
	if err != nil {
		t.Fatalf("open sender: %v", err)
	}
	to, err = sockaddr(sutAddr(p, v6))
	if err != nil {
		t.Fatal(err)
	}
	return fd, to
}

// payload is number in 8 bytes, then byte(i).
func payload(number, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(i)
	}
	binary.BigEndian.PutUint64(b, uint64(number))
	return b
}

// checkPayload returns the number, or -1 if it is not a payload of that size.
func checkPayload(b []byte, size int) int {
	if len(b) != size {
		return -1
	}
	for i := 8; i < len(b); i++ {
		if b[i] != byte(i) {
			return -1
		}
	}
	return int(binary.BigEndian.Uint64(b))
}

// send sends n datagrams of size bytes, numbered from first, over flows in turn.
func send(t testing.TB, p *nstest.Pair, v6 bool, first, n, size, flows int) {
	t.Helper()
	fds := make([]int, flows)
	var to unix.Sockaddr
	for i := range fds {
		fds[i], to = mustSender(t, p, v6, i)
		defer unix.Close(fds[i])
	}
	for i := range n {
		if err := unix.Sendto(fds[i%flows], payload(first+i, size), 0, to); err != nil {
			t.Fatalf("send: %v", err)
		}
	}
}

// udpPayload returns what follows the UDP header of an untagged frame.
func udpPayload(f []byte) []byte {
	switch {
	case len(f) >= 42 && f[12] == 0x08 && f[13] == 0x00:
		return f[42 : 14+int(binary.BigEndian.Uint16(f[16:]))]
	case len(f) >= 62 && f[12] == 0x86 && f[13] == 0xdd:
		return f[62 : 54+int(binary.BigEndian.Uint16(f[18:]))]
	}
	return nil
}

// receive is Receive, asked again while nothing comes: any signal, the runtime's own among them, may end a wait early.
func receive(t testing.TB, r receiver, b [][]byte) int {
	t.Helper()
	for range 50 {
		n, err := r.Receive(b)
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return n
		}
	}
	t.Fatalf("nothing came: %v", r.Counters())
	return 0
}

// collect receives until want datagrams have come, or none for 300 ms, and returns how often each number came.
func collect(t testing.TB, r receiver, frames bool, want, size, batch int) (seen map[int]int, total int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	seen = map[int]int{}
	b := make([][]byte, batch)
	for last := time.Now(); total < want && time.Since(last) < 300*time.Millisecond; {
		n, err := r.Receive(b)
		if err != nil {
			t.Errorf("receive: %v", err)
			return seen, total
		}
		for _, f := range b[:n] {
			if frames {
				f = udpPayload(f)
			}
			seen[checkPayload(f, size)]++
		}
		total += n
		if n > 0 {
			last = time.Now()
		}
		if err := r.Release(); err != nil {
			t.Errorf("release: %v", err)
		}
	}
	return seen, total
}

// exactly fails unless each number of 0..n-1 came once, and nothing else.
func exactly(t testing.TB, seen map[int]int, n int) {
	t.Helper()
	for i := range n {
		if seen[i] != 1 {
			t.Fatalf("datagram %d came %d times; %d different ones of %d, %d damaged", i, seen[i], len(seen), n, seen[-1])
		}
	}
	if len(seen) != n {
		t.Fatalf("%d different datagrams, want %d; %d damaged", len(seen), n, seen[-1])
	}
}
