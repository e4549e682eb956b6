// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// setVariables sets constants of a program by their C names, before it is loaded.
func setVariables(spec *ebpf.CollectionSpec, vars map[string]any) error {
	for name, value := range vars {
		v, ok := spec.Variables[name]
		if !ok {
			return fmt.Errorf("set %s: the program has no such constant", name)
		}
		if err := v.Set(value); err != nil {
			return fmt.Errorf("set %s: %w", name, err)
		}
	}
	return nil
}

// load puts the programs and maps of spec into the kernel and into obj, a pointer to a bpf2go struct.
func load(what string, spec *ebpf.CollectionSpec, obj any) error {
	return loadSharing(what, spec, obj, nil)
}

// loadSharing is load with maps, by their C names, that another program has made.
func loadSharing(what string, spec *ebpf.CollectionSpec, obj any, maps map[string]*ebpf.Map) error {
	err := spec.LoadAndAssign(obj, &ebpf.CollectionOptions{MapReplacements: maps})
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("load %s: %w (needs CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON)", what, err)
	}
	if err != nil {
		return fmt.Errorf("load %s: %w", what, err)
	}
	return nil
}

// setFrags marks an XDP program as able to take frames of several buffers (section xdp.frags): same code, one flag.
func setFrags(p *ebpf.ProgramSpec, on bool) {
	if on {
		p.Flags |= unix.BPF_F_XDP_HAS_FRAGS
	}
}
