// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// UMEMOptions shape packet memory.
type UMEMOptions struct {
	Frames    int       // chunks; required
	ChunkSize int       // bytes, 2048 or 4096; default 4096
	Headroom  int       // bytes kept free in front of received frames, besides the kernel's 256; less than ChunkSize-256, in newer kernels at most ChunkSize-704
	HugePages HugePages // default HugeAuto
}

func (o UMEMOptions) withDefaults() (UMEMOptions, error) {
	if o.ChunkSize == 0 {
		o.ChunkSize = 4096
	}
	// xdp_umem_reg in net/xdp/xdp_umem.c: XDP_UMEM_MIN_CHUNK_SIZE up to one page, a power of two.
	if o.ChunkSize != 2048 && o.ChunkSize != 4096 || o.ChunkSize > os.Getpagesize() {
		return o, &OptionError{"ChunkSize", o.ChunkSize, "must be 2048 or 4096 bytes"}
	}
	if o.Headroom < 0 || o.Headroom >= o.ChunkSize-xdpHeadroom {
		return o, &OptionError{"Headroom", o.Headroom, fmt.Sprintf("must be 0..%d bytes", o.ChunkSize-xdpHeadroom-1)}
	}
	if o.Frames < 1 || o.Frames > 1<<24 {
		return o, &OptionError{"Frames", o.Frames, "must be 1..16777216"}
	}
	if o.HugePages < HugeAuto || o.HugePages > HugeRequire {
		return o, &OptionError{"HugePages", o.HugePages, "is not one of its constants"}
	}
	return o, nil
}

// UMEM is packet memory. Each socket on it takes a range of frames of its own at Open and returns it at Close, so no frame ever has two owners.
// Its methods may be called from any goroutine.
type UMEM struct {
	opts UMEMOptions
	huge bool // obtained

	mu      sync.Mutex
	mem     []byte    // all of the mapping, nil when closed
	members []*member // sockets, in the order of their frames
	first   Settings  // of the socket that bound first; all others are like it
}

// member is a socket's share of a UMEM.
type member struct {
	first, count int // frames
	fd           int // of the bound socket, -1 before
}

const hugePage = 2 << 20

// NewUMEM maps memory for sockets to share; see Options.UMEM. Close it after the sockets. For a single socket, Open does all this by itself.
func NewUMEM(o UMEMOptions) (*UMEM, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	u := &UMEM{opts: o}
	if u.mem, u.huge, err = mapMemory(o.Frames*o.ChunkSize, o.HugePages); err != nil {
		return nil, fmt.Errorf("map %d frames of %d bytes: %w", o.Frames, o.ChunkSize, err)
	}
	return u, nil
}

func mapMemory(size int, h HugePages) (mem []byte, huge bool, err error) {
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_POPULATE
	if h == HugeRequire || h == HugeAuto && size >= hugePage {
		rounded := (size + hugePage - 1) / hugePage * hugePage // munmap wants whole pages
		mem, err = unix.Mmap(-1, 0, rounded, prot, flags|unix.MAP_HUGETLB|21<<unix.MAP_HUGE_SHIFT)
		if err == nil {
			return mem, true, nil
		}
		if h == HugeRequire {
			return nil, false, fmt.Errorf("%w: %w", ErrNoHugePages, err)
		}
	}
	mem, err = unix.Mmap(-1, 0, size, prot, flags)
	return mem, false, err
}

// size is what is registered with the kernel: whole frames, without the rounding up to huge pages.
func (u *UMEM) size() int { return u.opts.Frames * u.opts.ChunkSize }

// take reserves count neighbouring frames: the first gap that is large enough.
func (u *UMEM) take(count int) (*member, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.mem == nil {
		return nil, fmt.Errorf("take frames: %w", ErrClosed)
	}
	first := 0
	for i := 0; ; i++ {
		end := u.opts.Frames
		if i < len(u.members) {
			end = u.members[i].first
		}
		if end-first >= count {
			m := &member{first, count, -1}
			u.members = slices.Insert(u.members, i, m)
			return m, nil
		}
		if i == len(u.members) {
			return nil, &OptionError{"UMEM", u.opts.Frames, fmt.Sprintf("frames do not have %d neighbouring ones free", count)}
		}
		first = u.members[i].first + u.members[i].count
	}
}

// giveBack returns the frames of a socket that is closed.
func (u *UMEM) giveBack(m *member) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.members = slices.DeleteFunc(u.members, func(x *member) bool { return x == m })
}

// sharer returns the descriptor of a socket bound on this UMEM, to share it with (XDP_SHARED_UMEM), or -1. The caller holds mu.
func (u *UMEM) sharer() int {
	for _, m := range u.members {
		if m.fd >= 0 {
			return m.fd
		}
	}
	return -1
}

// Frames returns how many frames the UMEM has.
func (u *UMEM) Frames() int { return u.opts.Frames }

// Close unmaps the memory. It fails, and may be repeated, while sockets are open on it. Closing twice is no error.
func (u *UMEM) Close() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.mem == nil {
		return nil
	}
	if n := len(u.members); n > 0 {
		return fmt.Errorf("close UMEM: %w by %d sockets", ErrInUse, n)
	}
	mem := u.mem
	u.mem = nil
	if err := unix.Munmap(mem); err != nil {
		return fmt.Errorf("unmap UMEM: %w", err)
	}
	return nil
}

// register makes the memory known to the kernel as this socket's UMEM (XDP_UMEM_REG). The kernel pins its pages.
func (u *UMEM) register(fd int) error {
	err := sysRegister(fd, u.mem[:u.size()], uint32(u.opts.ChunkSize), uint32(u.opts.Headroom))
	if errors.Is(err, unix.ENOBUFS) {
		return fmt.Errorf("register UMEM of %d bytes: %w: %w", u.size(), ErrMemlock, err)
	}
	if errors.Is(err, unix.EINVAL) && u.opts.Headroom > 0 {
		// Newer stable kernels also want room for an skb_shared_info and a small frame: the limit measured on 6.18.44 is ChunkSize-704.
		too := &OptionError{"Headroom", u.opts.Headroom, "is too much for this kernel"}
		return fmt.Errorf("register UMEM of %d bytes: %w: %w", u.size(), too, err)
	}
	if err != nil {
		return fmt.Errorf("register UMEM of %d bytes: %w", u.size(), err)
	}
	return nil
}
