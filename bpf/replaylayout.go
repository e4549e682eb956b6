// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"time"
)

// chunkBytes is how much of a list one element of the map bytes holds: an element is found by a look-up and addressed with an
// offset that the verifier keeps below 2^29.
const chunkBytes = 16 << 20

// layout is where the frames of a list lie in the map bytes, as c/replay.bpf.c reads it.
type layout struct {
	chunks int
	stride int // bytes of an element
	offMax int // highest offset of a frame
	at     []framePlace
}

type framePlace struct {
	chunk, off, length int
}

// layOut packs frames one after the other, aligned to 8 bytes, none across two elements.
func layOut(frames [][]byte) layout {
	l := layout{chunks: 1, at: make([]framePlace, len(frames))}
	off := 0
	for i, f := range frames {
		if off > chunkBytes {
			l.chunks++
			off = 0
		}
		l.at[i] = framePlace{chunk: l.chunks - 1, off: off, length: len(f)}
		l.offMax = max(l.offMax, off)
		off += (len(f) + 7) &^ 7
	}
	l.stride = (l.offMax + MaxReplayFrame + 7) &^ 7 // the program may read MaxReplayFrame bytes from any offset
	return l
}

// writeIndex writes struct replay_frame for every frame.
func (l layout) writeIndex(b []byte, due []time.Duration) {
	const size = 24 // of struct replay_frame
	for i, p := range l.at {
		e := b[size*i:]
		if due != nil {
			binary.NativeEndian.PutUint64(e, uint64(due[i]))
		}
		binary.NativeEndian.PutUint32(e[8:], uint32(p.chunk))
		binary.NativeEndian.PutUint32(e[12:], uint32(p.off))
		binary.NativeEndian.PutUint32(e[16:], uint32(p.length))
	}
}

func (l layout) writeBytes(b []byte, frames [][]byte) {
	for i, p := range l.at {
		copy(b[p.chunk*l.stride+p.off:], frames[i])
	}
}
