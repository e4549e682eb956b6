// SPDX-License-Identifier: Apache-2.0

// Package netstack is what an AF_XDP program needs of a network stack and the kernel no longer does for it. Its first part is
// the reassembly of fragmented IPv4 and IPv6 datagrams (RFC 791, 815, 8200, 5722, 6946).
//
// It does no input or output, starts no goroutines, asks no clock and, after its set-up, allocates nothing: packets and the
// time are handed in, datagrams are handed out.
package netstack
