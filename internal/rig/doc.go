// SPDX-License-Identifier: Apache-2.0

// Package rig gives a measurement its two sides: network namespaces joined by a veth cable (the default), two ports of
// this host moved into namespaces, or one port used where it is. It places the NAPI of each side on a CPU, reads the
// placement back, and leaves the host as it found it, whatever kills the process.
//
// Two rules keep the host clean. The veth rig lives in anonymous namespaces that only this process and the processes
// started in them hold open, so the kernel removes it with the last of them and nothing has to be written down. What a
// process can not take with it (a moved NIC, a named namespace) is written to a journal before it is changed, and
// [Recover] undoes what a dead owner left.
package rig
