// SPDX-License-Identifier: Apache-2.0

// Package kernelpath is the kernel network stack at its best, as seen from a program: what AF_XDP has to beat.
//
// Every receiver has the same shape, so that one loop drives them all and an A/B differs in the path only:
//
//	n, err := r.Receive(frames) // waits a bounded time, lends up to len(frames) packets
//	...                         // use frames[:n]
//	err = r.Release()           // gives the memory back
//
// Packets are UDP payloads for the socket receivers ([Epoll], [Recvmmsg]) and whole Ethernet frames without FCS for
// [Packet]. [NoSocket] receives nothing: the device counts.
//
// A receiver belongs to one goroutine, locked to its OS thread (runtime.LockOSThread), in the network namespace where it
// was opened. Only Wake may be called from elsewhere. The data path uses the kernel directly: no net package, no runtime
// poller, no allocation per packet, and no word to the scheduler (see syscall_unsafe.go). A process needs at least two
// processors (GOMAXPROCS) for its other goroutines to run while a receiver waits.
package kernelpath
