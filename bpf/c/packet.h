/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Frame layout: offsets from the first byte of the Ethernet header (RFC 791, 768, 8200) and the stamp. */
#ifndef TWOPATH_PACKET_H
#define TWOPATH_PACKET_H

#include "kernel.h"

#define ETH_LEN 14
#define IP4_LEN 20
#define IP6_LEN 40
#define UDP_LEN 8
#define STAMP_LEN 18

#define ETHERTYPE_IP4 0x0800
#define ETHERTYPE_ARP 0x0806
#define ETHERTYPE_VLAN 0x8100
#define ETHERTYPE_QINQ 0x88a8
#define ETHERTYPE_IP6 0x86dd

#define PROTO_UDP 17

/* Unaligned loads and stores: BPF allows them on packet data where the CPU does (amd64, arm64). */
#define ld8(p, off) (*(u8 *)((void *)(p) + (off)))
#define ld16(p, off) (*(u16 *)((void *)(p) + (off)))
#define ld32(p, off) (*(u32 *)((void *)(p) + (off)))
#define ld64(p, off) (*(u64 *)((void *)(p) + (off)))
#define st8(p, off, v) (*(u8 *)((void *)(p) + (off)) = (v))
#define st16(p, off, v) (*(u16 *)((void *)(p) + (off)) = (v))
#define st32(p, off, v) (*(u32 *)((void *)(p) + (off)) = (v))
#define st64(p, off, v) (*(u64 *)((void *)(p) + (off)) = (v))

/* Folds a one's complement sum to 16 bits (RFC 1071; 2^16 and 2^32 are both 1 modulo 65535). */
static __always_inline u16 csum_fold(u64 c)
{
	c = (c & 0xffffffff) + (c >> 32);
	c = (c & 0xffffffff) + (c >> 32);
	c = (c & 0xffff) + (c >> 16);
	c = (c & 0xffff) + (c >> 16);
	c = (c & 0xffff) + (c >> 16);
	return c;
}

#endif
