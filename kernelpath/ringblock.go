// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"encoding/binary"
	"errors"
)

// Offsets in a TPACKET_V3 block (include/uapi/linux/if_packet.h): struct tpacket_block_desc with tpacket_hdr_v1 inside,
// then struct tpacket3_hdr before each frame.
const (
	blockHeader   = 48 // bytes of tpacket_block_desc
	blockPackets  = 12 // u32 num_pkts
	blockFirst    = 16 // u32 offset_to_first_pkt
	frameHeader   = 48 // bytes of tpacket3_hdr
	frameNext     = 0  // u32 tp_next_offset, from this header; 0 in the last frame
	frameSnaplen  = 12 // u32 tp_snaplen, bytes captured
	frameLength   = 16 // u32 tp_len, bytes on the wire
	frameStatus   = 20 // u32 tp_status
	frameMAC      = 24 // u16 tp_mac, offset of the Ethernet header from this header
	frameVLANTCI  = 32 // u16 tp_vlan_tci (u32, of which 16 are used)
	frameVLANTPID = 36 // u16 tp_vlan_tpid
)

var errBlock = errors.New("packet ring: block header points outside its block")

// block walks the frames of one ring block that the kernel has handed over.
type block struct {
	data []byte
	at   uint32 // offset of the next frame's header
	left uint32 // frames not yet returned
}

// openBlock starts a walk.
func openBlock(data []byte) (block, error) {
	if len(data) < blockHeader {
		return block{}, errBlock
	}
	return block{
		data: data,
		at:   binary.NativeEndian.Uint32(data[blockFirst:]),
		left: binary.NativeEndian.Uint32(data[blockPackets:]),
	}, nil
}

// frame is one frame and what the kernel says about it.
type frame struct {
	data   []byte
	cut    bool // longer on the wire than what was captured
	tagged bool // a VLAN tag was put back
}

// next returns the next frame. Preconditions: left > 0.
//
// The kernel takes VLAN tags out of frames and delivers them beside (net/core/dev.c: skb_vlan_untag). They are put back in
// place, so that frames and bytes are those on the wire, and those AF_XDP sees. This needs 4 bytes before the frame:
// PACKET_RESERVE.
func (b *block) next() (f frame, err error) {
	if uint64(b.at)+frameHeader > uint64(len(b.data)) {
		return f, errBlock
	}
	h := b.data[b.at:]
	mac := int(binary.NativeEndian.Uint16(h[frameMAC:]))
	captured := binary.NativeEndian.Uint32(h[frameSnaplen:])
	if mac < frameHeader || uint64(mac)+uint64(captured) > uint64(len(h)) {
		return f, errBlock
	}
	end := mac + int(captured)
	f.cut = captured < binary.NativeEndian.Uint32(h[frameLength:])
	if status := binary.NativeEndian.Uint32(h[frameStatus:]); status&statusVLANValid != 0 && captured >= 14 && mac >= frameHeader+4 {
		mac -= 4
		copy(h[mac:mac+12], h[mac+4:mac+16])
		tpid := uint16(0x8100)
		if status&statusVLANTPIDValid != 0 {
			tpid = binary.NativeEndian.Uint16(h[frameVLANTPID:])
		}
		binary.BigEndian.PutUint16(h[mac+12:], tpid)
		binary.BigEndian.PutUint16(h[mac+14:], binary.NativeEndian.Uint16(h[frameVLANTCI:]))
		f.tagged = true
	}
	f.data = h[mac:end:end]
	b.left--
	b.at += binary.NativeEndian.Uint32(h[frameNext:]) // checked when it is used
	return f, nil
}
