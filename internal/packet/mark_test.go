// SPDX-License-Identifier: Apache-2.0

package packet

import "testing"

func TestMark(t *testing.T) {
	frame := make([]byte, 14)
	for _, run := range []uint32{1, 0xffff, 0x10000, 0xdeadbeef} {
		for _, loop := range []uint16{0, 1, 0xff, 0x100, 0xffff} {
			PutMark(frame, run, 300)
			PutLoop(frame, loop)
			if got, ok := Mark(frame, run); !ok || got != loop {
				t.Errorf("run %#x: read %d, %v, want %d", run, got, ok, loop)
			}
			if _, ok := Mark(frame, run+1); ok {
				t.Errorf("run %#x: a frame of the run after is taken for ours", run)
			}
			if p := MarkPrefix(run); string(frame[6:9]) != string(p[:]) || frame[6]&3 != 2 || frame[9] != 300&0xff {
				t.Errorf("run %#x: address % x", run, frame[6:12])
			}
		}
	}
	if _, ok := Mark(frame[:13], 0xdeadbeef); ok {
		t.Error("13 bytes are a frame")
	}
}
