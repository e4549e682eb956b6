// SPDX-License-Identifier: Apache-2.0

// Package engine makes concrete arms out of the packages that know one path each: xsk with bpf's redirect program for the
// xdp engine, kernelpath for the kernel's, the asavie/xdp library for its own arm. It fits them to the loops of workload
// and to the parts of the agent protocol, and is the only package that knows both sides.
package engine
