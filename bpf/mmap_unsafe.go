// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// mapMemory is an array map (BPF_F_MMAPABLE) seen as the 64-bit words of its values.
type mapMemory struct {
	mem []byte
}

func mmapMap(m *ebpf.Map) (*mapMemory, error) {
	page := os.Getpagesize()
	size := (int(m.ValueSize()+7)&^7*int(m.MaxEntries()) + page - 1) / page * page
	mem, err := unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s into memory: %w", m.String(), err)
	}
	return &mapMemory{mem: mem}, nil
}

// word returns the i-th 64-bit word. The other side is a BPF program, which loads and stores whole aligned words.
func (m *mapMemory) word(i int) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&m.mem[i*8]))
}

func (m *mapMemory) close() error {
	if m == nil || m.mem == nil {
		return nil
	}
	mem := m.mem
	m.mem = nil
	return unix.Munmap(mem)
}

// snapshot copies *T, a struct of 64-bit words only, from word first on. Each word is whole; the words may be of
// different moments.
func snapshot[T any](m *mapMemory, first int) (t T) {
	n := int(unsafe.Sizeof(t)) / 8
	words := unsafe.Slice((*uint64)(unsafe.Pointer(&t)), n)
	for i := range words {
		words[i] = m.word(first + i).Load()
	}
	return t
}

// The index of the 64-bit word that a field of a bpf2go struct occupies. Each state of a sending program starts with a pace.
const (
	paceStop = int(unsafe.Offsetof(generatePace{}.Stop) / 8)
	paceDone = int(unsafe.Offsetof(generatePace{}.Done) / 8)
	paceSent = int(unsafe.Offsetof(generatePace{}.Sent) / 8)

	accountSeq   = int(unsafe.Offsetof(cpumeterCpuAccount{}.Seq) / 8)
	accountWords = int(unsafe.Sizeof(cpumeterCpuAccount{}) / 8)

	generateStateWords = int(unsafe.Sizeof(generateGeneratorState{}) / 8)
	replayStateWords   = int(unsafe.Sizeof(replayReplayState{}) / 8)
	askStateWords      = int(unsafe.Sizeof(askAskState{}) / 8)
)
