// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"net/netip"
	"time"
)

// Effective is what a receiver or sender obtained, as opposed to what was asked for. Fields that do not apply are zero.
type Effective struct {
	Receiver       string         `json:"receiver"` // epoll, recvmmsg, packet or nosocket; of senders write, sendto, sendmmsg or packet
	Local          netip.AddrPort `json:"local"`    // bound address, with the port the kernel chose when 0 was asked
	Wait           Wait           `json:"wait"`
	Timeout        time.Duration  `json:"timeout_ns"`
	Batch          int            `json:"batch"`         // packets one Receive lends at most
	BufferBytes    int            `json:"buffer_bytes"`  // of one receive buffer; longer datagrams are cut
	RcvbufAsked    int            `json:"rcvbuf_asked"`  // bytes
	Rcvbuf         int            `json:"rcvbuf"`        // bytes as SO_RCVBUF reads back: twice the request (socket(7)), unless capped
	RcvbufForced   bool           `json:"rcvbuf_forced"` // SO_RCVBUFFORCE worked: rmem_max did not cap
	BusyPoll       time.Duration  `json:"busy_poll_ns"`
	PreferBusyPoll bool           `json:"prefer_busy_poll"`
	BusyPollBudget int            `json:"busy_poll_budget"` // packets
	GRO            bool           `json:"gro"`              // UDP_GRO
	Ring           Ring           `json:"ring"`
	Promiscuous    bool           `json:"promiscuous"`
	SndbufAsked    int            `json:"sndbuf_asked"`  // bytes; 0 left the kernel's default
	Sndbuf         int            `json:"sndbuf"`        // bytes as SO_SNDBUF reads back
	SndbufForced   bool           `json:"sndbuf_forced"` // SO_SNDBUFFORCE worked: wmem_max did not cap
	GSO            bool           `json:"gso"`           // UDP_SEGMENT
	QdiscBypass    bool           `json:"qdisc_bypass"`  // PACKET_QDISC_BYPASS
	Quiet          Quiet          `json:"quiet"`         // what becomes of the kernel's own copy of each frame
}

// Ring is the geometry of an AF_PACKET ring (Documentation/networking/packet_mmap.rst).
type Ring struct {
	BlockBytes int           `json:"block_bytes"`
	Blocks     int           `json:"blocks"`
	Retire     time.Duration `json:"retire_ns"` // an unfilled block is handed over after this time
}
