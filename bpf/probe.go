// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// ErrNotSupported is what a probe returns when this kernel certainly lacks the feature. Any other error means that it
// could not be told, for want of privilege most often.
var ErrNotSupported = ebpf.ErrNotSupported

// ProbeXDP tells whether XDP programs can be loaded.
func ProbeXDP() error { return probed("XDP programs", features.HaveProgramType(ebpf.XDP)) }

// ProbeXSKMap tells whether frames can be redirected to AF_XDP sockets (Linux 4.18).
func ProbeXSKMap() error { return probed("XSKMAP", features.HaveMapType(ebpf.XSKMap)) }

// ProbeFrags tells whether XDP programs can take frames of several buffers (Linux 5.18).
func ProbeFrags() error {
	p, err := tinyXDP(unix.BPF_F_XDP_HAS_FRAGS)
	if errors.Is(err, unix.EINVAL) {
		err = ErrNotSupported
	}
	if err == nil {
		err = p.Close()
	}
	return probed("XDP multi-buffer", err)
}

// ProbeBTF tells whether the kernel describes its own types, which the CPU meter needs.
func ProbeBTF() error {
	_, err := btf.LoadKernelSpec()
	return probed("kernel BTF", err)
}

// ProbeXDPLink tells whether XDP can be attached by bpf_link, so that it goes with the process (Linux 5.9). Nothing stays
// attached: the loopback device (always index 1) has no native XDP, and a kernel without such links does not get as far
// as saying so.
func ProbeXDPLink() error {
	const what, loopback = "bpf_link for XDP", 1
	p, err := tinyXDP(0)
	if err != nil {
		return probed(what, err)
	}
	defer p.Close()
	l, err := link.AttachXDP(link.XDPOptions{Program: p, Interface: loopback, Flags: link.XDPDriverMode})
	switch {
	case err == nil:
		return probed(what, l.Close())
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EBUSY), errors.Is(err, unix.EEXIST):
		return nil
	case errors.Is(err, unix.EINVAL):
		err = ErrNotSupported
	}
	return probed(what, err)
}

// ProbeLiveFrames tells whether the generator can run (Linux 5.18): one frame is made and dropped.
func ProbeLiveFrames() error {
	p, err := tinyXDP(0)
	if err != nil {
		return probed("XDP live frames", err)
	}
	defer p.Close()
	err = runLive(p.FD(), make([]byte, 60), 1, 1)
	if errors.Is(err, unix.EINVAL) {
		err = ErrNotSupported
	}
	return probed("XDP live frames", err)
}

// tinyXDP loads a program that drops.
func tinyXDP(flags uint32) (*ebpf.Program, error) {
	return ebpf.NewProgram(&ebpf.ProgramSpec{Name: "probe", Type: ebpf.XDP, License: "Dual BSD/GPL", Flags: flags,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpDrop), asm.Return()}})
}

func probed(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
