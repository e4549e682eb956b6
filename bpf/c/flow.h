/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tells the run's frames from all others. Shared by redirect, drop and sink, so that all three agree to the frame. */
#ifndef TWOPATH_FLOW_H
#define TWOPATH_FLOW_H

#include "packet.h"

/* Why a program was done with a frame. Exactly one is counted per frame. */
enum reason {
	REASON_REDIRECTED,   /* the run's, handed to the AF_XDP socket of its queue */
	REASON_NO_SOCKET,    /* the run's, on a queue no socket reads */
	REASON_DROPPED,      /* the run's, dropped on purpose (drop) */
	REASON_COUNTED,      /* the run's, counted and dropped (sink) */
	REASON_TOO_SHORT,    /* ends inside the headers it announces, or before the stamp */
	REASON_VLAN,         /* 802.1Q or 802.1ad tag */
	REASON_ARP,
	REASON_FOREIGN_L2,   /* neither IPv4 nor IPv6 */
	REASON_FOREIGN_MAC,  /* another destination MAC */
	REASON_FOREIGN_IP,   /* the other IP version, a bad version field, or other addresses */
	REASON_IP_OPTIONS,   /* IPv4 options or IPv6 extension headers */
	REASON_FRAGMENT,     /* IPv4 or IPv6 fragment */
	REASON_FOREIGN_L4,   /* not UDP */
	REASON_FOREIGN_PORT,
	REASON_FOREIGN_RUN,  /* our ports, but the stamp of another run */
	REASONS,
};

struct flow_match {
	u32 src[4], dst[4];    /* network order; IPv4 in the first word */
	u32 run;               /* host order */
	u32 src_ports;         /* how many, from src_port_first; 0 = any */
	u16 src_port_first;    /* host order */
	u16 dst_port;          /* host order */
	u8 dst_mac[6];
	u8 family;             /* 4 or 6 */
	u8 any_src, any_dst;   /* 1 = address not looked at */
	u8 any_run, any_mac;
	u8 pad;
};

volatile const struct flow_match match = {};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, REASONS);
	__type(key, u32); /* enum reason */
	__type(value, u64);
} reasons SEC(".maps");

volatile const enum reason unused_reason = REASONS; /* puts the enum into BTF, from where Go has it */

#define QUEUES 64

/* The run's frames by the queue they arrived on, read or not; the last entry also takes all queues above. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, QUEUES);
	__type(key, u32);
	__type(value, u64);
} queues SEC(".maps");

static __always_inline void count(enum reason why)
{
	u32 key = why;
	u64 *n = bpf_map_lookup_elem(&reasons, &key);
	if (n)
		(*n)++;
}

static __always_inline void count_queue(struct xdp_md *ctx)
{
	u32 key = ctx->rx_queue_index;
	if (key >= QUEUES)
		key = QUEUES - 1;
	u64 *n = bpf_map_lookup_elem(&queues, &key);
	if (n)
		(*n)++;
}

#define OURS (-1)

/* Returns OURS if the frame is of the run's IP version, or the reason why it is not the run's. */
static __always_inline int foreign_l2(void *d, void *end)
{
	if (d + ETH_LEN > end)
		return REASON_TOO_SHORT;
	switch (ld16(d, 12)) {
	case be16(ETHERTYPE_VLAN):
	case be16(ETHERTYPE_QINQ):
		return REASON_VLAN;
	case be16(ETHERTYPE_ARP):
		return REASON_ARP;
	case be16(ETHERTYPE_IP4):
		if (match.family != 4)
			return REASON_FOREIGN_IP;
		break;
	case be16(ETHERTYPE_IP6):
		if (match.family != 6)
			return REASON_FOREIGN_IP;
		break;
	default:
		return REASON_FOREIGN_L2;
	}
	return OURS;
}

/* Returns OURS if the datagram at u has the run's stamp, or need not have it; else the reason why it is not the run's. */
static __always_inline int foreign_run(void *u, void *end)
{
	if (!match.any_run) {
		if (u + UDP_LEN + STAMP_LEN > end)
			return REASON_TOO_SHORT;
		if (ld32(u, UDP_LEN) != be32(match.run))
			return REASON_FOREIGN_RUN;
	}
	return OURS;
}

/* Returns OURS, or the reason why the frame is not the run's. *udp is then the offset of the UDP header. */
static __always_inline int classify(void *d, void *end, u32 *udp)
{
	int why = foreign_l2(d, end);
	if (why != OURS)
		return why;
	if (!match.any_mac) {
		for (int i = 0; i < 6; i++)
			if (ld8(d, i) != match.dst_mac[i])
				return REASON_FOREIGN_MAC;
	}

	u32 off;
	u8 proto;
	if (match.family == 4) {
		off = ETH_LEN + IP4_LEN;
		if (d + ETH_LEN + IP4_LEN > end)
			return REASON_TOO_SHORT;
		u8 ver = ld8(d, 14);
		if (ver >> 4 != 4 || (ver & 15) < 5)
			return REASON_FOREIGN_IP;
		if (!match.any_src && ld32(d, 26) != match.src[0])
			return REASON_FOREIGN_IP;
		if (!match.any_dst && ld32(d, 30) != match.dst[0])
			return REASON_FOREIGN_IP;
		if (ver != 0x45)
			return REASON_IP_OPTIONS;
		if (ld16(d, 20) & be16(0x3fff)) /* more fragments, or an offset */
			return REASON_FRAGMENT;
		proto = ld8(d, 23);
	} else {
		off = ETH_LEN + IP6_LEN;
		if (d + ETH_LEN + IP6_LEN > end)
			return REASON_TOO_SHORT;
		if (ld8(d, 14) >> 4 != 6)
			return REASON_FOREIGN_IP;
		if (!match.any_src)
			for (int i = 0; i < 4; i++)
				if (ld32(d, 22 + 4 * i) != match.src[i])
					return REASON_FOREIGN_IP;
		if (!match.any_dst)
			for (int i = 0; i < 4; i++)
				if (ld32(d, 38 + 4 * i) != match.dst[i])
					return REASON_FOREIGN_IP;
		proto = ld8(d, 20);
		switch (proto) {
		case 44:
			return REASON_FRAGMENT;
		/* hop-by-hop, routing, ESP, AH, destination options, mobility, HIP, shim6 (IANA: IPv6 extension header types) */
		case 0: case 43: case 50: case 51: case 60: case 135: case 139: case 140:
			return REASON_IP_OPTIONS;
		}
	}
	if (proto != PROTO_UDP)
		return REASON_FOREIGN_L4;
	void *u = d + off;
	if (u + UDP_LEN > end)
		return REASON_TOO_SHORT;
	if (ld16(u, 2) != be16(match.dst_port))
		return REASON_FOREIGN_PORT;
	if (match.src_ports) {
		u32 port = be16(ld16(u, 0));
		if (port < match.src_port_first || port - match.src_port_first >= match.src_ports)
			return REASON_FOREIGN_PORT;
	}
	*udp = off;
	return foreign_run(u, end);
}

#endif
