// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Mode is where an XDP program sits.
type Mode int

const (
	Native  Mode = iota + 1 // in the driver, before an skb exists
	Generic                 // in the stack, on an skb: works on every device, and is no fast path
	Offload                 // on the NIC; seen by Attached only
)

func (m Mode) String() string {
	switch m {
	case Native:
		return "native"
	case Generic:
		return "generic"
	case Offload:
		return "offload"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Link is an attached program. The attachment ends with Close, or with the process.
type Link struct {
	l       link.Link
	ifIndex int
	mode    Mode
}

// Mode returns how the program is attached: as asked, Attach never falls back.
func (l *Link) Mode() Mode { return l.mode }

// IfIndex returns the interface the program is attached to.
func (l *Link) IfIndex() int { return l.ifIndex }

// Close detaches the program. It may be called twice.
func (l *Link) Close() error {
	if err := l.l.Close(); err != nil {
		return fmt.Errorf("detach XDP from interface %d: %w", l.ifIndex, err)
	}
	return nil
}

// Attach attaches an XDP program to an interface of the calling thread's network namespace, by bpf_link: the kernel
// detaches it when the process ends, however it ends. A program that is attached already is never replaced.
// Errors: *ForeignProgramError, *MTUError, *NativeUnsupportedError, or else *AttachError.
func Attach(prog *ebpf.Program, ifIndex int, mode Mode) (*Link, error) {
	var flags link.XDPAttachFlags
	switch mode {
	case Native:
		flags = link.XDPDriverMode
	case Generic:
		flags = link.XDPGenericMode
	default:
		return nil, fmt.Errorf("attach XDP: mode must be Native or Generic, not %s", mode)
	}
	o := link.XDPOptions{Program: prog, Interface: ifIndex, Flags: flags}
	l, err := link.AttachXDP(o)
	if err == nil {
		return &Link{l: l, ifIndex: ifIndex, mode: mode}, nil
	}
	return nil, explain(o, mode, err)
}

// explain finds out why the kernel refused.
func explain(o link.XDPOptions, mode Mode, err error) error {
	e := &AttachError{IfIndex: o.Interface, Mode: mode, Err: err}
	dev, devErr := net.InterfaceByIndex(o.Interface)
	if devErr != nil {
		e.Err = fmt.Errorf("%w (%w)", err, devErr)
		return e
	}
	e.Name = dev.Name
	if errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST) {
		if there, qerr := Attached(o.Interface); qerr == nil && len(there) > 0 {
			p := there[0]
			f := &ForeignProgramError{IfIndex: o.Interface, Interface: dev.Name, ProgID: p.ProgID, Mode: p.Mode, Err: err}
			f.Name, f.Tag = programName(p.ProgID)
			f.Owner = owners(p.ProgID)
			return f
		}
	}
	e.Kernel = kernelText(o)
	info := linkInfo(o.Interface)
	switch {
	case mode == Native && mtuRefused(err, e.Kernel):
		return &MTUError{AttachError: e, MTU: dev.MTU, Limit: nativeMTULimit(info.kind)}
	case mode == Native && (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTSUP)):
		return &NativeUnsupportedError{AttachError: e}
	}
	return e
}
