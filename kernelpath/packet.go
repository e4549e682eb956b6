// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Defaults of the ring: 8 MiB as the UDP receivers' buffer, in blocks of about 1,800 of the smallest frames.
const (
	DefaultBlockBytes = 256 << 10
	DefaultBlocks     = 32
	DefaultRetire     = time.Millisecond
)

// statuses of frames and blocks (if_packet.h)
const (
	statusKernel        = 0
	statusUser          = unix.TP_STATUS_USER
	statusVLANValid     = unix.TP_STATUS_VLAN_VALID
	statusVLANTPIDValid = unix.TP_STATUS_VLAN_TPID_VALID
)

// PacketOptions are the options of a [Packet] receiver.
type PacketOptions struct {
	Interface   string         // device to receive from; required
	Local       netip.AddrPort // receive only UDP to this address and port; the zero value means every incoming frame
	Timeout     time.Duration  // the longest one Receive waits, whole milliseconds; 0 means DefaultTimeout
	Batch       int            // frames one Receive lends at most; 0 means DefaultBatch
	Ring        Ring           // zero fields mean DefaultBlockBytes, DefaultBlocks, DefaultRetire
	Promiscuous bool           // accept frames to any MAC address while the receiver is open
	Quiet       Quiet          // keep the kernel from answering the test flow
	// SourceMAC (optional) receives only frames whose source MAC address begins so; it excludes Local.
	SourceMAC []byte
	// Fanout (optional) is a number other than 0 that several receivers of one namespace and device share: a frame goes to one
	// of them, by the receive queue it came on (PACKET_FANOUT_QM), as with AF_XDP sockets.
	Fanout uint16
}

func (o *PacketOptions) complete() error {
	if o.Interface == "" {
		return errors.New("options: Interface: a device name is required")
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Ring.BlockBytes == 0 {
		o.Ring.BlockBytes = DefaultBlockBytes
	}
	if o.Ring.Blocks == 0 {
		o.Ring.Blocks = DefaultBlocks
	}
	if o.Ring.Retire == 0 {
		o.Ring.Retire = DefaultRetire
	}
	if err := completeTimeout(&o.Timeout); err != nil {
		return err
	}
	page := os.Getpagesize()
	switch {
	case o.Local != (netip.AddrPort{}) && (!o.Local.IsValid() || o.Local.Addr().Is4In6() || o.Local.Port() == 0):
		return fmt.Errorf("options: Local: %v is not an address and port to filter by", o.Local)
	case o.Batch < 1 || o.Batch > 1<<16:
		return fmt.Errorf("options: Batch: %d frames is not within 1..65536", o.Batch)
	case o.Ring.BlockBytes < page || o.Ring.BlockBytes%page != 0 || o.Ring.BlockBytes > 4<<20:
		return fmt.Errorf("options: Ring.BlockBytes: %d is not a multiple of the page size %d within 4 MiB", o.Ring.BlockBytes, page)
	case o.Ring.Blocks < 2 || o.Ring.Blocks > 1<<16 || o.Ring.Blocks*o.Ring.BlockBytes > 1<<30:
		return fmt.Errorf("options: Ring.Blocks: %d is not within 2..65536, 1 GiB in all", o.Ring.Blocks)
	case o.Ring.Retire < time.Millisecond || o.Ring.Retire > time.Second || o.Ring.Retire%time.Millisecond != 0:
		return fmt.Errorf("options: Ring.Retire: %v is not a whole number of milliseconds within 1ms..1s", o.Ring.Retire)
	case o.Quiet < QuietNone || o.Quiet > QuietSocket:
		return fmt.Errorf("options: Quiet: %v is not a policy", o.Quiet)
	case len(o.SourceMAC) > 6 || len(o.SourceMAC) > 0 && o.Local.IsValid():
		return fmt.Errorf("options: SourceMAC: %x is more than an address, or given with Local", o.SourceMAC)
	case o.Quiet == QuietSocket && !o.Local.IsValid():
		return errors.New("options: Quiet: a quiet socket needs the address and port in Local")
	}
	return nil
}

// Packet receives whole frames from an AF_PACKET ring (TPACKET_V3) that it shares with the kernel.
//
// The kernel copies each frame into the ring and then goes on with its own copy: see [Quiet] for what becomes of that.
type Packet struct {
	o       PacketOptions
	fd      int
	sink    *socket // Quiet's
	waker   *waker
	ring    []byte
	current block
	index   int  // block being read, or to be read next
	open    bool // current is valid
	done    bool // current was lent to its end: Release gives it back
	poll    [2]unix.PollFd
	timeout unix.Timespec
	count   packetCounts
	total   struct{ packets, drops, freeze uint64 }
	queued  uint64
	sunk    uint64 // datagrams taken out of the quiet socket
	closed  bool
}

type packetCounts struct {
	waitCounts
	frames, bytes, blocks, cut, tagged uint64
}

// OpenPacket opens the ring on a device in the network namespace of the calling thread.
func OpenPacket(o PacketOptions) (r *Packet, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r = &Packet{o: o, fd: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
			r = nil
		}
	}()
	ifindex, err := interfaceIndex(o.Interface)
	if err != nil {
		return r, err
	}
	if r.waker, err = newWaker(); err != nil {
		return r, err
	}
	if o.Quiet == QuietSocket {
		// 1 byte: the kernel raises it to SOCK_MIN_RCVBUF, a datagram or two.
		s := Socket{Local: o.Local, Rcvbuf: 1}
		if r.sink, err = openSocket(&s, unix.SOCK_NONBLOCK); err != nil {
			return r, err
		}
	}
	// Protocol 0 receives nothing until bind names one, so no frame gets in before the filter and the ring are there.
	if r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0); err != nil {
		r.fd = -1
		return r, explain("open packet socket", err)
	}
	if err = r.setup(ifindex); err != nil {
		return r, err
	}
	r.poll[0] = unix.PollFd{Fd: int32(r.fd), Events: unix.POLLIN}
	r.poll[1] = unix.PollFd{Fd: int32(r.waker.fd), Events: unix.POLLIN}
	return r, nil
}

func (r *Packet) setup(ifindex int) (err error) {
	if r.o.Local.IsValid() || len(r.o.SourceMAC) > 0 {
		code := sourceFilter(r.o.SourceMAC)
		if r.o.Local.IsValid() {
			code = udpFilter(r.o.Local)
		}
		prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
		if err := unix.SetsockoptSockFprog(r.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &prog); err != nil {
			return explain("attach socket filter", err)
		}
	}
	for _, opt := range []struct {
		name  string
		n, to int
	}{
		{"PACKET_VERSION", unix.PACKET_VERSION, unix.TPACKET_V3},
		{"PACKET_RESERVE", unix.PACKET_RESERVE, 16}, // room for a VLAN tag, without losing the kernel's alignment
		{"PACKET_IGNORE_OUTGOING", unix.PACKET_IGNORE_OUTGOING, 1},
	} {
		if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, opt.n, opt.to); err != nil {
			return explain("set "+opt.name, err)
		}
	}
	g := r.o.Ring
	const frameSize = 2048 // V3 packs frames tightly; the number is only checked for consistency
	req := unix.TpacketReq3{Block_size: uint32(g.BlockBytes), Block_nr: uint32(g.Blocks), Frame_size: frameSize,
		Frame_nr: uint32(g.BlockBytes / frameSize * g.Blocks), Retire_blk_tov: uint32(g.Retire.Milliseconds())}
	if err := unix.SetsockoptTpacketReq3(r.fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &req); err != nil {
		return explain("set PACKET_RX_RING", err)
	}
	r.ring, err = unix.Mmap(r.fd, 0, g.BlockBytes*g.Blocks, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return explain("mmap packet ring", err)
	}
	if r.o.Promiscuous {
		if err := promiscuous(r.fd, ifindex); err != nil {
			return err
		}
	}
	sa := unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_ALL), Ifindex: ifindex}
	if err := unix.Bind(r.fd, &sa); err != nil {
		return explain("bind packet socket to "+r.o.Interface, err)
	}
	if r.o.Fanout != 0 {
		// Only a bound socket may join (net/packet/af_packet.c, fanout_add).
		if err := unix.SetsockoptInt(r.fd, unix.SOL_PACKET, unix.PACKET_FANOUT, int(r.o.Fanout)|unix.PACKET_FANOUT_QM<<16); err != nil {
			return explain("join packet fanout group", err)
		}
	}
	return nil
}

func (r *Packet) blockAt(i int) []byte {
	n := r.o.Ring.BlockBytes
	return r.ring[i*n : (i+1)*n : (i+1)*n]
}

// Receive waits for frames at most the timeout and lends up to len(b) of them, until Release or the next Receive. 0, nil means that nothing
// came, or that a signal or Wake ended the wait. A frame waits for its block to fill up, or for Ring.Retire.
func (r *Packet) Receive(b [][]byte) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	if err := r.Release(); err != nil { // of a caller who forgot, or the walk would stop at this block for ever
		return 0, err
	}
	if !r.open {
		ok, err := r.advance()
		if err != nil {
			return 0, err
		}
		if !ok {
			if ready, err := r.wait(); err != nil || !ready {
				return 0, err
			}
			if ok, err = r.advance(); err != nil || !ok {
				return 0, err
			}
		}
	}
	n := min(len(b), r.o.Batch, int(r.current.left))
	for i := range n {
		f, err := r.current.next()
		if err != nil {
			return i, err
		}
		if f.cut {
			r.count.cut++
		}
		if f.tagged {
			r.count.tagged++
		}
		r.count.bytes += uint64(len(f.data))
		b[i] = f.data
	}
	r.count.frames += uint64(n)
	r.done = r.current.left == 0
	return n, nil
}

// advance opens the next block if the kernel has handed it over.
func (r *Packet) advance() (ok bool, err error) {
	data := r.blockAt(r.index)
	// Acquire: pairs with the write barrier before the kernel sets the status (net/packet/af_packet.c: prb_flush_block).
	if blockStatus(data).Load()&statusUser == 0 {
		return false, nil
	}
	if r.current, err = openBlock(data); err != nil {
		return false, err
	}
	r.count.blocks++
	r.open = true
	r.done = r.current.left == 0
	return true, nil
}

func (r *Packet) wait() (ready bool, err error) {
	events, err := r.waker.sleep(&r.poll, &r.timeout, r.o.Timeout, &r.count.waitCounts)
	if err != nil {
		return false, err
	}
	if events&unix.POLLERR != 0 {
		if e, err := unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_ERROR); err == nil && e != 0 {
			return false, explain("packet socket on "+r.o.Interface, unix.Errno(e))
		}
	} else if events != 0 {
		r.count.wakeups++
		return true, nil
	}
	return false, nil
}

// Release gives the block back to the kernel when the last of its frames was lent.
func (r *Packet) Release() error {
	if r.done && !r.closed {
		// Release: our reads come before the kernel's next writes (af_packet.c: prb_open_block, after it reads the status).
		blockStatus(r.blockAt(r.index)).Store(statusKernel)
		r.index = (r.index + 1) % r.o.Ring.Blocks
		r.open, r.done = false, false
	}
	return nil
}

// Queued counts, and throws away, the frames left in the ring. Call it when no more is sent; it waits for the block being
// filled to be handed over.
func (r *Packet) Queued() (uint64, error) {
	if r.closed {
		return 0, ErrClosed
	}
	if err := r.Release(); err != nil {
		return 0, err
	}
	// The kernel's timer hands over a block with something in it after one to two periods.
	for idle := 0; idle < 4; {
		if !r.open {
			ok, err := r.advance()
			if err != nil {
				return r.queued, err
			}
			if !ok {
				time.Sleep(r.o.Ring.Retire)
				idle++
				continue
			}
		}
		idle = 0
		r.queued += uint64(r.current.left)
		r.current.left, r.done = 0, true
		if err := r.Release(); err != nil {
			return r.queued, err
		}
	}
	return r.queued, nil
}

// sinkQueued counts what the quiet socket had room for, and makes that room again.
func (r *Packet) sinkQueued() uint64 {
	var b [1]byte
	for {
		if _, errno := nowRead(r.sink.fd, b[:]); errno != 0 {
			return r.sunk
		}
		r.sunk++
	}
}

// Counters returns the witnesses by their ledger names. packet.packets counts every frame that passed the filter,
// packet.drops those of them that found the ring full, packet.freeze how often it became so (PACKET_STATISTICS).
// packet.sink_drops and packet.sink_queued are the datagrams of the test flow that the quiet socket swallowed: they were
// also in the ring, and are no loss, but udp.RcvbufErrors counts the former. A witness that could not be read is absent.
func (r *Packet) Counters() map[string]uint64 {
	m := map[string]uint64{
		"packet.received":       r.count.frames,
		"packet.received_bytes": r.count.bytes,
		"packet.blocks":         r.count.blocks,
		"packet.cut":            r.count.cut,
		"packet.vlan":           r.count.tagged,
		"packet.queued":         r.queued,
		"syscalls.poll":         r.count.waits,
		"syscalls.wakeups":      r.count.wakeups,
		"syscalls.timeouts":     r.count.timeouts,
		"syscalls.interrupted":  r.count.interrupts,
	}
	if r.closed {
		return m
	}
	if r.sink != nil {
		if d, err := r.sink.drops(); err == nil {
			m["packet.sink_drops"], m["packet.sink_queued"] = d, r.sinkQueued()
		}
	}
	// Reading resets the kernel's numbers.
	if s, err := unix.GetsockoptTpacketStatsV3(r.fd, unix.SOL_PACKET, unix.PACKET_STATISTICS); err == nil {
		r.total.packets += uint64(s.Packets)
		r.total.drops += uint64(s.Drops)
		r.total.freeze += uint64(s.Freeze_q_cnt)
		m["packet.packets"], m["packet.drops"], m["packet.freeze"] = r.total.packets, r.total.drops, r.total.freeze
	}
	return m
}

// Effective returns what was obtained.
func (r *Packet) Effective() Effective {
	return Effective{Receiver: "packet", Local: r.o.Local, Wait: WaitBlock, Timeout: r.o.Timeout, Batch: r.o.Batch, Ring: r.o.Ring,
		Promiscuous: r.o.Promiscuous, Quiet: r.o.Quiet}
}

// Wake ends the wait in progress, or the next one. It may be called from any goroutine until Close.
func (r *Packet) Wake() error { return r.waker.wake() }

// Close gives everything back. It must not run beside Receive: Wake first, and wait for Receive to return.
func (r *Packet) Close() (err error) {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.ring != nil {
		err = errors.Join(err, unix.Munmap(r.ring))
	}
	if r.fd >= 0 {
		err = errors.Join(err, unix.Close(r.fd))
	}
	if r.sink != nil {
		err = errors.Join(err, unix.Close(r.sink.fd))
	}
	if r.waker != nil {
		err = errors.Join(err, r.waker.close())
	}
	return err
}
