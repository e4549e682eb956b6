// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// etherType is IEEE's local experimental type 1: only such frames, and VLAN-tagged ones, are redirected, so whatever else a namespace sends is not counted.
const etherType = 0x88b5

// redirect is an XDP program on one end that redirects test frames to an XSKMAP by queue, and passes all else.
type redirect struct {
	m *ebpf.Map
}

func attach(t testing.TB, e *nstest.End, flags link.XDPAttachFlags, frags bool) *redirect {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: 64})
	if err != nil {
		t.Fatalf("make map: %v", err)
	}
	t.Cleanup(func() { m.Close() })
	spec := &ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),  // xdp_md.data
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),  // xdp_md.data_end
		asm.LoadMem(asm.R6, asm.R1, 16, asm.Word), // xdp_md.rx_queue_index
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, 14),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 12, asm.Half),
		asm.HostTo(asm.BE, asm.R5, asm.Half),
		asm.JEq.Imm(asm.R5, unix.ETH_P_8021Q, "take"),
		asm.JNE.Imm(asm.R5, etherType, "pass"),
		asm.LoadMapPtr(asm.R1, m.FD()).WithSymbol("take"),
		asm.Mov.Reg(asm.R2, asm.R6),
		asm.Mov.Imm(asm.R3, 2), // XDP_PASS if the slot is empty
		asm.FnRedirectMap.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, 2).WithSymbol("pass"),
		asm.Return(),
	}}
	if frags {
		spec.Flags = unix.BPF_F_XDP_HAS_FRAGS
	}
	prog, err := ebpf.NewProgram(spec)
	if err != nil {
		t.Fatalf("load program: %v", err)
	}
	t.Cleanup(func() { prog.Close() })
	e.Do(t, func() {
		l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: e.Index, Flags: flags})
		if err != nil {
			t.Fatalf("attach: %v", err)
		}
		t.Cleanup(func() { l.Close() })
	})
	return &redirect{m}
}

func (r *redirect) add(t testing.TB, s *Socket) {
	t.Helper()
	if err := r.m.Put(uint32(s.Mode().Queue), uint32(s.FD())); err != nil {
		t.Fatalf("add socket to map: %v", err)
	}
}

// openAt opens a socket inside an end's namespace and closes it with the test.
func openAt(t testing.TB, e *nstest.End, o Options) *Socket {
	t.Helper()
	s, err := tryOpen(t, e, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func tryOpen(t testing.TB, e *nstest.End, o Options) (s *Socket, err error) {
	t.Helper()
	if o.Device == "" {
		o.Device = e.Name
	}
	if o.BindTimeout == 0 {
		o.BindTimeout = 20 * time.Second // a queue just closed comes free late on a machine that is busy with other things
	}
	e.Do(t, func() { s, err = Open(o) })
	return s, err
}

// receiver makes a pair with a redirecting program and one socket on queue 0 of the SUT's end.
func receiver(t testing.TB, po nstest.Options, o Options) (*nstest.Pair, *Socket) {
	t.Helper()
	p := nstest.NewPair(t, po)
	r := attach(t, p.SUT, link.XDPDriverMode, o.MultiBuffer)
	s := openAt(t, p.SUT, o)
	r.add(t, s)
	return p, s
}

// packetSocket is an AF_PACKET socket on an end, for sending and for reading test frames.
type packetSocket struct {
	t  testing.TB
	fd int
}

func newPacketSocket(t testing.TB, e *nstest.End) *packetSocket {
	t.Helper()
	ps := &packetSocket{t: t}
	e.Do(t, func() {
		proto := int(binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, etherType)))
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			t.Fatalf("packet socket: %v", err)
		}
		ps.fd = fd
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: uint16(proto), Ifindex: e.Index}); err != nil {
			t.Fatalf("bind packet socket: %v", err)
		}
		_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20)
	})
	return ps
}

// frame returns test frame number n of the given length; every byte after the header depends on n.
func frame(n uint32, size int) []byte {
	b := make([]byte, size)
	writeFrame(b, n)
	return b
}

func writeFrame(b []byte, n uint32) {
	copy(b, []byte{2, 0x74, 0x70, 0, 0, 1, 2, 0x74, 0x70, 0, 0, 2, etherType >> 8, etherType & 0xff})
	if len(b) >= 18 {
		binary.BigEndian.PutUint32(b[14:], n)
		for i := 18; i < len(b); i++ {
			b[i] = byte(n) + byte(i)
		}
	}
}

// checkFrame returns the number of a test frame, or an error if a byte is not what writeFrame wrote.
func checkFrame(b []byte) (uint32, error) {
	if len(b) < 18 || binary.BigEndian.Uint16(b[12:]) != etherType {
		return 0, errors.New("no test frame")
	}
	n := binary.BigEndian.Uint32(b[14:])
	for i := 18; i < len(b); i++ {
		if b[i] != byte(n)+byte(i) {
			return n, errors.New("corrupt")
		}
	}
	return n, nil
}

// send sends count frames of the given length numbered from first.
func (ps *packetSocket) send(first, count, size int) {
	ps.t.Helper()
	for i := range count {
		if _, err := unix.Write(ps.fd, frame(uint32(first+i), size)); err != nil {
			ps.t.Fatalf("send frame %d of %d bytes: %v", i, size, err)
		}
	}
}

// read returns the numbers of the frames that arrive until none has for quiet.
func (ps *packetSocket) read(want int, quiet time.Duration) map[uint32]int {
	ps.t.Helper()
	got := map[uint32]int{}
	b := make([]byte, 16384)
	for total := 0; ; total++ {
		if total >= want {
			quiet = 5 * time.Millisecond // only to see that there is no more
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(ps.fd), Events: unix.POLLIN}}, int(quiet.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			total--
			continue
		}
		if n == 0 {
			return got
		}
		l, from, err := unix.Recvfrom(ps.fd, b, 0)
		if err != nil {
			ps.t.Fatalf("read packet socket: %v", err)
		}
		if ll, ok := from.(*unix.SockaddrLinklayer); ok && ll.Pkttype == unix.PACKET_OUTGOING {
			total--
			continue
		}
		k, err := checkFrame(b[:l])
		if err != nil {
			ps.t.Fatalf("frame of %d bytes: %v", l, err)
		}
		got[k]++
	}
}

// collect receives until want frames came and then none for a moment, checks each, and returns how often each number came and the lengths.
func collect(t testing.TB, s *Socket, want int) map[uint32]int {
	t.Helper()
	got := map[uint32]int{}
	descs := make([]Desc, 64)
	deadline := time.Now().Add(5 * time.Second)
	quiet := time.Time{}
	for total := 0; ; {
		n := s.Receive(descs)
		for _, d := range descs[:n] {
			k, err := checkFrame(s.Frame(d))
			if err != nil {
				t.Fatalf("frame of %d bytes at %#x: %v", d.Len, d.Addr, err)
			}
			got[k]++
		}
		if r := s.Release(descs[:n]); r != n {
			t.Fatalf("released %d of %d", r, n)
		}
		total += n
		now := time.Now()
		if total >= want && n == 0 {
			if quiet.IsZero() {
				quiet = now.Add(5 * time.Millisecond)
			}
			if now.After(quiet) {
				return got
			}
		} else if now.After(deadline) {
			t.Fatalf("received %d of %d frames in 5 s", total, want)
		}
	}
}

// exactly fails unless got is each of first..first+count-1 once.
func exactly(t testing.TB, got map[uint32]int, first, count int) {
	t.Helper()
	for i := range count {
		if c := got[uint32(first+i)]; c != 1 {
			t.Errorf("frame %d came %d times", first+i, c)
		}
	}
	if len(got) != count {
		t.Errorf("%d different frames came, want %d", len(got), count)
	}
}

// stats reads the kernel's statistics without TxRingEmptyDescs, which rises with every kick that sends all there is.
func stats(t testing.TB, s *Socket) Stats {
	t.Helper()
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	st.TxRingEmptyDescs = 0
	return st
}
