// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// sockBytes is the memory of one connection.
const sockBytes = 64

// PortRange is Count ports from First up.
type PortRange struct {
	First uint16
	Count int
}

func (r PortRange) check(what string) error {
	if r.Count < 1 || r.First == 0 || int(r.First)+r.Count > 1<<16 {
		return fmt.Errorf("%s: %d ports from %d are not within 1..65535", what, r.Count, r.First)
	}
	return nil
}

// Tuples are all connections that can be: each client address and port with each server address and port. The low 16 bits
// of the clients' addresses must differ, and so those of the servers'.
type Tuples struct {
	Clients     []netip.Addr
	ClientPorts PortRange
	Servers     []netip.Addr
	ServerPorts PortRange
}

// maxTuples is what 32-bit links reach.
const maxTuples = 1<<32 - 2

// Count is the number of connections that can be open at a time.
func (t Tuples) Count() int {
	return len(t.Clients) * t.ClientPorts.Count * len(t.Servers) * t.ServerPorts.Count
}

// Bytes is the memory that the connections take, tables aside.
func (t Tuples) Bytes() int { return t.Count() * sockBytes }

func (t Tuples) check() error {
	if len(t.Clients) == 0 || len(t.Servers) == 0 {
		return errors.New("tuples: no client or no server address")
	}
	if err := t.ClientPorts.check("client ports"); err != nil {
		return fmt.Errorf("tuples: %w", err)
	}
	if err := t.ServerPorts.check("server ports"); err != nil {
		return fmt.Errorf("tuples: %w", err)
	}
	v6 := t.Clients[0].Is6()
	for _, a := range append(append([]netip.Addr(nil), t.Clients...), t.Servers...) {
		if !a.IsValid() || a.Is6() != v6 || a.Is4In6() {
			return fmt.Errorf("tuples: address %s: all must be of one IP version", a)
		}
	}
	if len(t.Clients) > 1<<16 || len(t.Servers) > 1<<16 || t.Count() > maxTuples {
		return fmt.Errorf("tuples: %d connections are more than %d", t.Count(), uint64(maxTuples))
	}
	return nil
}

// directory finds an address by its low 16 bits.
type directory struct {
	slots []uint16 // index + 1
	addrs [][16]byte
	sums  []uint32
	v6    bool
}

func newDirectory(what string, addrs []netip.Addr) (directory, error) {
	d := directory{slots: make([]uint16, 1<<16), v6: addrs[0].Is6()}
	for i, a := range addrs {
		b := a.AsSlice()
		key := binary.BigEndian.Uint16(b[len(b)-2:])
		if other := d.slots[key]; other != 0 {
			return d, fmt.Errorf("%s: %s and %s have the same low 16 bits, by which they are found", what, addrs[other-1], a)
		}
		if i == 1<<16-1 {
			return d, fmt.Errorf("%s: more than %d addresses", what, 1<<16-1)
		}
		d.slots[key] = uint16(i + 1)
		var full [16]byte
		copy(full[:], b)
		d.addrs = append(d.addrs, full)
		d.sums = append(d.sums, uint32(sumWords(b)))
	}
	return d, nil
}

// find is the index of an address as it stands in a frame.
func (d *directory) find(b []byte) (int, bool) {
	i := int(d.slots[binary.BigEndian.Uint16(b[len(b)-2:])]) - 1
	if i < 0 {
		return 0, false
	}
	a := &d.addrs[i]
	if d.v6 {
		return i, [16]byte(b) == *a
	}
	return i, binary.BigEndian.Uint32(b) == binary.BigEndian.Uint32(a[:])
}

// sumWords adds 16-bit words, of which b has a few.
func sumWords(b []byte) (sum uint64) {
	for ; len(b) >= 2; b = b[2:] {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	return sum
}
