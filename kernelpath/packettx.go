// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// PacketSendOptions are the options of a [PacketSend] sender.
type PacketSendOptions struct {
	Interface string // device to send from; required
	Batch     int    // frames one Reserve lends at most; 0 means DefaultBatch
	Frames    int    // of the ring, a power of two; 0 means DefaultTxFrames
	Buffer    int    // bytes of the longest frame, without FCS; 0 means 1518
	Sndbuf    int    // SO_SNDBUF to ask for, bytes; 0 leaves the kernel's default
	Qdisc     bool   // pass the queueing discipline; the default goes past it (PACKET_QDISC_BYPASS), as AF_XDP does
}

// DefaultTxFrames is how many frames a TX ring has: as many as a batch or two and what the device holds meanwhile.
const DefaultTxFrames = 512

// Layout of a TPACKET_V2 frame in a TX ring (if_packet.h, af_packet.c: tpacket_parse_header): status and length at the
// start, the Ethernet header where the kernel's own header, aligned to 16, ends.
const (
	txLengthAt = 4
	txFrameAt  = 32
)

// PacketSend sends whole frames from an AF_PACKET ring (TPACKET_V2) that it shares with the kernel. The kernel makes an
// sk_buff over the ring's memory and gives the frame back when the device is done with it.
type PacketSend struct {
	o      PacketSendOptions
	fd     int
	ring   []byte
	stride int
	sndbuf int
	forced bool
	head   uint32 // frames lent since the start
	lent   int
	room   []([]byte) // all frames, where a packet is written
	count  sendCounts
	bad    uint64 // frames the kernel refused to send (TP_STATUS_WRONG_FORMAT)
	closed bool
}

func (o *PacketSendOptions) complete() error {
	if o.Interface == "" {
		return errors.New("options: Interface: a device name is required")
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Frames == 0 {
		o.Frames = DefaultTxFrames
	}
	if o.Buffer == 0 {
		o.Buffer = 1518
	}
	switch {
	case o.Frames < 2 || o.Frames > 1<<16 || o.Frames&(o.Frames-1) != 0:
		return fmt.Errorf("options: Frames: %d is not a power of two within 2..65536", o.Frames)
	case o.Batch < 1 || o.Batch > o.Frames:
		return fmt.Errorf("options: Batch: %d frames is not within 1..Frames (%d)", o.Batch, o.Frames)
	case o.Buffer < 14 || o.Buffer > 1<<16:
		return fmt.Errorf("options: Buffer: %d bytes is not within 14..65536", o.Buffer)
	case o.Sndbuf < 0 || o.Sndbuf > 1<<30:
		return fmt.Errorf("options: Sndbuf: %d bytes is not within 0..%d", o.Sndbuf, 1<<30)
	}
	return nil
}

// OpenPacketSend opens the ring on a device in the network namespace of the calling thread. The socket receives nothing.
func OpenPacketSend(o PacketSendOptions) (s *PacketSend, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s = &PacketSend{o: o, fd: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	ifindex, err := interfaceIndex(o.Interface)
	if err != nil {
		return s, err
	}
	if s.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil { // protocol 0: no reception
		s.fd = -1
		return s, explain("open packet socket", err)
	}
	return s, s.setup(ifindex)
}

func (s *PacketSend) setup(ifindex int) (err error) {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V2); err != nil {
		return explain("set PACKET_VERSION", err)
	}
	if !s.o.Qdisc {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1); err != nil {
			return explain("set PACKET_QDISC_BYPASS (Linux 3.14)", err)
		}
	}
	if s.o.Sndbuf > 0 {
		s.forced = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, s.o.Sndbuf) == nil
		if !s.forced {
			if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, s.o.Sndbuf); err != nil {
				return explain("set SO_SNDBUF", err)
			}
		}
	}
	if s.sndbuf, err = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil {
		return explain("get SO_SNDBUF", err)
	}
	block := os.Getpagesize()
	s.stride = 256
	for s.stride < txFrameAt+s.o.Buffer {
		s.stride *= 2
	}
	block = max(block, s.stride)
	blocks := max(s.o.Frames*s.stride/block, 1)
	req := unix.TpacketReq{Block_size: uint32(block), Block_nr: uint32(blocks), Frame_size: uint32(s.stride), Frame_nr: uint32(block / s.stride * blocks)}
	s.o.Frames = int(req.Frame_nr)
	if err := unix.SetsockoptTpacketReq(s.fd, unix.SOL_PACKET, unix.PACKET_TX_RING, &req); err != nil {
		return explain("set PACKET_TX_RING", err)
	}
	s.ring, err = unix.Mmap(s.fd, 0, block*blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return explain("mmap packet ring", err)
	}
	for i := range s.o.Frames {
		s.room = append(s.room, s.frameAt(uint32(i))[txFrameAt:])
	}
	sa := unix.SockaddrLinklayer{Ifindex: ifindex} // protocol 0 again: what is sent says its own
	if err := unix.Bind(s.fd, &sa); err != nil {
		return explain("bind packet socket to "+s.o.Interface, err)
	}
	return nil
}

func (s *PacketSend) frameAt(i uint32) []byte {
	at := int(i&uint32(s.o.Frames-1)) * s.stride
	return s.ring[at : at+s.stride : at+s.stride]
}

// Buffers are all the frames that Reserve lends from, for a caller that prepares them once.
func (s *PacketSend) Buffers() [][]byte { return s.room }

// Reserve lends up to len(b) frames of the ring, until Submit; none when the device has not given the next one back.
func (s *PacketSend) Reserve(b [][]byte) (int, error) {
	if s.closed {
		return 0, ErrClosed
	}
	n := 0
	for n < min(len(b), s.o.Batch) {
		i := s.head + uint32(n)
		if !s.free(i) {
			break
		}
		b[n] = s.room[i&uint32(s.o.Frames-1)]
		n++
	}
	s.lent = n
	if n == 0 {
		// What the kernel has not sent yet, for want of socket buffer or because the device dropped it, waits for a call.
		return 0, s.kick()
	}
	return n, nil
}

// free tells whether a frame is ours. It pairs with __packet_set_status in af_packet.c (tpacket_destruct_skb).
func (s *PacketSend) free(i uint32) bool {
	w := txStatus(s.frameAt(i))
	switch w.Load() {
	case unix.TP_STATUS_AVAILABLE:
		return true
	case unix.TP_STATUS_WRONG_FORMAT:
		s.bad++
		w.Store(unix.TP_STATUS_AVAILABLE)
		return true
	}
	return false
}

// Submit hands the first len(b) lent frames over, in order, and has the kernel send. It returns len(b): a frame on the
// ring is sent by this call or a later one. The flow is the frames' own matter.
func (s *PacketSend) Submit(b [][]byte, _ int) (int, error) {
	if s.closed {
		return 0, ErrClosed
	}
	n := min(len(b), s.lent)
	for i, p := range b[:n] {
		f := s.frameAt(s.head + uint32(i))
		binary.NativeEndian.PutUint32(f[txLengthAt:], uint32(len(p)))
		txStatus(f).Store(unix.TP_STATUS_SEND_REQUEST) // pairs with packet_current_frame in tpacket_snd
		s.count.bytes += uint64(len(p))
	}
	s.head += uint32(n)
	s.lent = 0
	s.count.packets += uint64(n)
	return n, s.kick()
}

// kick sends what is on the ring. ENOBUFS says that the device dropped the frame, which stays on the ring and is tried
// again by the next kick (tpacket_snd).
func (s *PacketSend) kick() error {
	s.count.calls++
	if _, e := nowKick(s.fd); e != 0 && !s.count.transient(e) {
		return fmt.Errorf("send from packet ring: %w", e)
	}
	return nil
}

// Flush waits until the device has given every frame back.
func (s *PacketSend) Flush(timeout time.Duration) error {
	if s.closed {
		return ErrClosed
	}
	deadline := time.Now().Add(timeout)
	for {
		out := 0
		for i := range uint32(s.o.Frames) {
			if !s.free(i) {
				out++
			}
		}
		if out == 0 {
			return nil
		}
		if err := s.kick(); err != nil {
			return fmt.Errorf("flush, %d frames on the ring: %w", out, err)
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("flush: %d frames still on the ring after %v", out, timeout)
		}
		time.Sleep(20 * time.Microsecond) // let the other side's softirq run
	}
}

// Counters returns what was sent and which errors came, by their ledger names.
func (s *PacketSend) Counters() map[string]uint64 {
	m := s.count.counters("sendto")
	m["packet.wrong_format"] = s.bad
	m["packet.retried"] = s.count.nobufs
	return m
}

// Effective returns what was obtained.
func (s *PacketSend) Effective() Effective {
	return Effective{Receiver: "packet", Batch: s.o.Batch, BufferBytes: s.o.Buffer, SndbufAsked: s.o.Sndbuf, Sndbuf: s.sndbuf, SndbufForced: s.forced,
		QdiscBypass: !s.o.Qdisc, Ring: Ring{BlockBytes: s.stride, Blocks: s.o.Frames}}
}

// Close gives everything back.
func (s *PacketSend) Close() (err error) {
	if s.closed {
		return nil
	}
	s.closed = true
	if s.ring != nil {
		err = errors.Join(err, unix.Munmap(s.ring))
		s.ring, s.room = nil, nil
	}
	if s.fd >= 0 {
		err = errors.Join(err, unix.Close(s.fd))
	}
	return err
}
