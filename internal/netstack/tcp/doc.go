// SPDX-License-Identifier: Apache-2.0

// Package tcp is the TCP of a load engine (RFC 9293 where it meets real peers): frames go in, frames come out, and the clock
// is handed in. Connections are placed beforehand in pointer-free memory outside the Go heap, 64 bytes each, and found by
// arithmetic. A connection with one request is six packets, a request on a kept connection two.
//
// TIME_WAIT costs nothing here: a closed connection's numbers stay in its place and answer what comes late, until the tuple
// is used again, which a client does only after all others, with a sequence number beyond the last (RFC 9293, section
// 3.10.7.4).
package tcp
