// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// makeBlock lays frames out as the kernel does: header, address and headroom, frame, aligned to 16.
func makeBlock(size int, status uint32, frames ...[]byte) []byte {
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b[blockPackets:], uint32(len(frames)))
	at := blockHeader
	binary.NativeEndian.PutUint32(b[blockFirst:], uint32(at))
	for i, f := range frames {
		const mac = 98
		next := (mac + len(f) + 15) / 16 * 16
		if i == len(frames)-1 {
			binary.NativeEndian.PutUint32(b[at+frameNext:], 0)
		} else {
			binary.NativeEndian.PutUint32(b[at+frameNext:], uint32(next))
		}
		binary.NativeEndian.PutUint32(b[at+frameSnaplen:], uint32(len(f)))
		binary.NativeEndian.PutUint32(b[at+frameLength:], uint32(len(f)))
		binary.NativeEndian.PutUint32(b[at+frameStatus:], status)
		binary.NativeEndian.PutUint16(b[at+frameMAC:], mac)
		binary.NativeEndian.PutUint16(b[at+frameVLANTCI:], 0x2005)
		binary.NativeEndian.PutUint16(b[at+frameVLANTPID:], 0x88a8)
		copy(b[at+mac:], f)
		at += next
	}
	return b
}

func walk(data []byte) (frames []frame, err error) {
	b, err := openBlock(data)
	if err != nil {
		return nil, err
	}
	for b.left > 0 {
		f, err := b.next()
		if err != nil {
			return frames, err
		}
		frames = append(frames, f)
	}
	return frames, nil
}

func TestBlockWalk(t *testing.T) {
	one := bytes.Repeat([]byte{1}, 60)
	two := append([]byte{0: 9, 13: 0}, bytes.Repeat([]byte{2}, 100)...)
	got, err := walk(makeBlock(4096, 0, one, two, one))
	if err != nil || len(got) != 3 {
		t.Fatalf("%d frames, %v", len(got), err)
	}
	for i, want := range [][]byte{one, two, one} {
		if !bytes.Equal(got[i].data, want) || got[i].tagged || got[i].cut || cap(got[i].data) != len(want) {
			t.Errorf("frame %d: %+v", i, got[i])
		}
	}
	if got, err := walk(makeBlock(4096, 0)); err != nil || len(got) != 0 {
		t.Errorf("empty block: %v, %v", got, err)
	}
}

func TestBlockTag(t *testing.T) {
	f := []byte("ddddddssssssTTpayload")
	for status, tpid := range map[uint32]string{
		statusVLANValid:                       "\x81\x00",
		statusVLANValid | statusVLANTPIDValid: "\x88\xa8",
	} {
		got, err := walk(makeBlock(4096, status, f))
		if want := "ddddddssssss" + tpid + "\x20\x05TTpayload"; err != nil || len(got) != 1 || string(got[0].data) != want || !got[0].tagged {
			t.Errorf("status %#x: %q, %v; want %q", status, got[0].data, err, want)
		}
	}
}

func TestBlockRefused(t *testing.T) {
	for name, spoil := range map[string]func(b []byte) []byte{
		"short block":         func(b []byte) []byte { return b[:blockHeader-1] },
		"first outside":       func(b []byte) []byte { binary.NativeEndian.PutUint32(b[blockFirst:], 4090); return b },
		"first wraps":         func(b []byte) []byte { binary.NativeEndian.PutUint32(b[blockFirst:], 1<<32-8); return b },
		"frame past the end":  func(b []byte) []byte { binary.NativeEndian.PutUint32(b[blockHeader+frameSnaplen:], 5000); return b },
		"snaplen huge":        func(b []byte) []byte { binary.NativeEndian.PutUint32(b[blockHeader+frameSnaplen:], 1<<32-1); return b },
		"frame in its header": func(b []byte) []byte { binary.NativeEndian.PutUint16(b[blockHeader+frameMAC:], 40); return b },
		"next outside":        func(b []byte) []byte { binary.NativeEndian.PutUint32(b[blockHeader+frameNext:], 1<<31); return b },
	} {
		if _, err := walk(spoil(makeBlock(4096, 0, make([]byte, 60), make([]byte, 60)))); !errors.Is(err, errBlock) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a block says, no frame leaves it, and a walk ends.
func FuzzBlockWalk(f *testing.F) {
	f.Add(makeBlock(512, 0, []byte("one frame of some length"), []byte("another")))
	f.Add(makeBlock(512, statusVLANValid, []byte("ddddddssssssTTpayload")))
	f.Add(makeBlock(256, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := openBlock(data)
		if err != nil {
			return
		}
		for i := 0; b.left > 0 && i < 10000; i++ {
			before := b.left
			f, err := b.next()
			if err != nil {
				return
			}
			if b.left != before-1 {
				t.Fatal("the walk does not get on")
			}
			if len(f.data) > len(data) || cap(f.data) != len(f.data) {
				t.Fatalf("%d bytes (capacity %d) out of a block of %d", len(f.data), cap(f.data), len(data))
			}
			if f.tagged && len(f.data) < 18 {
				t.Fatalf("tagged frame of %d bytes", len(f.data))
			}
		}
	})
}
