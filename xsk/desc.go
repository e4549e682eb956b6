// SPDX-License-Identifier: Apache-2.0

package xsk

import "golang.org/x/sys/unix"

// Desc is a slot of the RX and TX rings (struct xdp_desc, linux/if_xdp.h): a piece of a UMEM that holds a frame, or part of one.
type Desc struct {
	Addr    uint64 // first byte, counted in bytes from the start of the UMEM
	Len     uint32 // bytes of frame from there, without FCS
	Options uint32 // XDP_PKT_CONTD: the packet goes on in the next descriptor
}

// MaxFrags is the most descriptors one packet takes in copy mode: MAX_SKB_FRAGS (17 unless the kernel was built otherwise) and the head.
const MaxFrags = 18

// More reports whether the packet goes on in the next descriptor. It happens only with Options.MultiBuffer.
func (d Desc) More() bool { return d.Options&unix.XDP_PKT_CONTD != 0 }

// SetMore says whether the packet goes on in the next descriptor. Sending such packets needs Options.MultiBuffer.
func (d *Desc) SetMore(more bool) {
	if more {
		d.Options |= unix.XDP_PKT_CONTD
	} else {
		d.Options &^= unix.XDP_PKT_CONTD
	}
}
