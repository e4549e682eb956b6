// SPDX-License-Identifier: Apache-2.0

// Package bpf holds the programs that run in the kernel, and loads them.
//
// On the receiving side Redirect hands the run's frames to AF_XDP sockets, Drop shows the ceiling, and Sink counts and
// checks without a reader; all three pass every frame that is not the run's, and count why. On the sending side a
// Generator makes frames at a given rate with XDP live frames. CPUMeter accounts CPU time, softirqs included, without
// sampling. Attach puts a program on an interface and never replaces one.
//
// The C sources are in c, the objects built from them are committed; see generate.go.
//
// The stamp is the first 18 bytes of the UDP payload, big endian: run id (32 bits), sequence (8 bits of stream, the
// generating core, and a 40-bit number from 0), and the intended send time (64 bits, ns of CLOCK_MONOTONIC). The rest of
// the payload is a pattern: byte i has the value i modulo 256.
package bpf
