// SPDX-License-Identifier: Apache-2.0

// Package flows follows sessions in a stream of Ethernet frames: a table of 5-tuples with the state of TCP, packets and bytes
// of each direction, and the request lines of HTTP/1. All memory is taken when the table is made; a frame costs no allocation.
package flows
