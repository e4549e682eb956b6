// SPDX-License-Identifier: Apache-2.0

// Package xsk opens AF_XDP sockets: packet memory shared with the kernel (the UMEM) and four rings of descriptors over it.
//
// The package knows nothing of traffic. It does not attach an XDP program: the caller attaches one that redirects to an XSKMAP, and puts
// [Socket.FD] into that map at the key of the socket's queue. It imports nothing but the standard library and golang.org/x/sys/unix, and never
// prints, exits or panics on what the kernel says.
//
// # How frames travel
//
// A UMEM is cut into chunks of one size, a chunk holds one frame. Frames belong to one socket and to one direction for ever:
//
//	receive:   fill ring -> kernel -> RX ring -> Receive -> you -> Release -> fill ring
//	transmit:  free list -> Reserve -> you -> Submit -> TX ring -> kernel -> completion ring -> Complete -> free list
//
// There are never more RX frames than fill ring slots, nor more TX frames than TX and completion slots. So Release always finds room, and a completion
// ring that nobody drained cannot stop the sender.
//
// # Ownership of memory
//
// [Socket.Receive] lends frames: [Socket.Frame] of a received descriptor may be read and written until that descriptor is given to [Socket.Release].
// [Socket.Reserve] lends frames to write: [Socket.Buffer] of such a descriptor is yours until Submit or [Socket.Cancel]. Nothing may be touched after [Socket.Close]:
// the memory is unmapped then, and a slice kept from before is a fault waiting to happen. Descriptors are plain values, copied out of and into the rings.
//
// # Who may call what
//
// One goroutine calls the receiving methods (Receive, Release, Wait, Queued, RxCounters); one, the same or another, the sending ones (Reserve,
// Submit, Cancel, Kick, Complete, Flush, TxCounters). Frame and Buffer may be called by either. Wake, Stats, Mode, FD and Alive may be called from anywhere
// until Close. Close itself is called once the other goroutines have stopped: Wake the receiver, wait for it, then close. After Close the receiving and sending
// methods find empty rings, and what returns an error returns [ErrClosed].
//
// Open looks the device up in the network namespace of the calling thread (lock the thread first if that is not the process's own); afterwards any thread will do.
//
// # What was asked and what was got
//
// [Socket.Mode] holds both: zero-copy or copy is read back from the kernel (XDP_OPTIONS), and so on for every setting that may turn out otherwise.
// With Options.Strict a difference is an error instead.
//
// # Errors
//
// Options are validated before the first system call; an [OptionError] names the field. Kernel refusals wrap the errno and one of the sentinels [ErrInUse],
// [ErrNoZeroCopy], [ErrNoQueue], [ErrNotSupported], [ErrMemlock], [ErrNoHugePages], [ErrNetDown], [ErrUnbound], [ErrDowngraded], [ErrStalled]; all work with errors.Is, and so do os.ErrPermission and the errno itself.
// EAGAIN, EBUSY, ENOBUFS and EINTR of a kick are part of sending and are counted in [TxCounters], not returned.
//
// A completion means that the kernel is done with the frame, not that the frame was transmitted: a driver that drops it (EBUSY) and a descriptor that the
// kernel finds invalid are completed as well (net/xdp/xsk.c). Reconcile with device counters and the receiving end.
package xsk
