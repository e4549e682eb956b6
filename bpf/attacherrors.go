// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// AttachError is a refusal for which there is no type of its own.
type AttachError struct {
	IfIndex int
	Name    string // of the interface
	Mode    Mode
	Kernel  string // the kernel's or driver's own sentence; empty before Linux 6.5 or when it gave none
	Err     error
}

func (e *AttachError) Error() string {
	s := fmt.Sprintf("attach XDP to %s (interface %d) in %s mode: %v", e.Name, e.IfIndex, e.Mode, e.Err)
	if e.Kernel != "" {
		s += ": " + e.Kernel
	}
	return s
}

func (e *AttachError) Unwrap() error { return e.Err }

// ForeignProgramError says that an XDP program is attached already. It was left alone.
type ForeignProgramError struct {
	IfIndex   int
	Interface string
	ProgID    uint32
	Name, Tag string  // of the program, as bpftool shows them; empty when not readable
	Owner     []Owner // processes that hold the program or its link; none when it was attached without a link
	Mode      Mode
	Err       error
}

func (e *ForeignProgramError) Error() string {
	s := fmt.Sprintf("attach XDP to %s: a program is there already: id %d, name %q, tag %s, %s mode", e.Interface, e.ProgID, e.Name, e.Tag, e.Mode)
	for _, o := range e.Owner {
		s += fmt.Sprintf(", held by %s (pid %d)", o.Comm, o.PID)
	}
	return s
}

func (e *ForeignProgramError) Unwrap() error { return e.Err }

// MTUError says that the MTU is too large for native XDP without multi-buffer support.
type MTUError struct {
	*AttachError
	MTU   int // of the interface, bytes; veth counts its peer's
	Limit int // largest MTU the driver takes; 0 means not known
}

func (e *MTUError) Error() string {
	s := fmt.Sprintf("%v: MTU %d is too large for native XDP", e.AttachError, e.MTU)
	if e.Limit > 0 {
		s += fmt.Sprintf(", limit %d", e.Limit)
	}
	return s
}

func (e *MTUError) Unwrap() error { return e.AttachError }

// NativeUnsupportedError says that the driver has no native XDP, or not for this set-up.
type NativeUnsupportedError struct{ *AttachError }

func (e *NativeUnsupportedError) Error() string {
	return fmt.Sprintf("%v: native XDP is not supported by this driver", e.AttachError)
}

func (e *NativeUnsupportedError) Unwrap() error { return e.AttachError }

// mtuRefused tells a refusal for the MTU by what drivers say; veth also has an errno for it.
func mtuRefused(err error, kernel string) bool {
	return strings.Contains(strings.ToUpper(kernel), "MTU") || kernel == "" && errors.Is(err, unix.ERANGE)
}

// nativeMTULimit returns the largest MTU for single-buffer native XDP where it follows from the driver's source.
// veth (drivers/net/veth.c, veth_xdp_set): a page less XDP_PACKET_HEADROOM (256), the Ethernet header (14) and
// skb_shared_info (320 after alignment): 3,506 with pages of 4 KiB.
func nativeMTULimit(kind string) int {
	if kind == "veth" {
		return os.Getpagesize() - 256 - 14 - 320
	}
	return 0
}
