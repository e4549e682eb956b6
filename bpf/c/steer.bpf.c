// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Hands the TCP segments of a test to the AF_XDP socket of the queue they arrived on; all other traffic, of other
// addresses, ports and protocols, goes on to the kernel.

#include "kernel.h"
#include "packet.h"

#define PROTO_TCP 6
#define TCP_LEN 20
#define QUEUES 64

/* Why the program was done with a frame. Exactly one is counted per frame. */
enum steer_reason {
	STEER_REDIRECTED, /* the test's, handed to the socket of its queue */
	STEER_NO_SOCKET,  /* the test's, on a queue no socket reads: dropped */
	STEER_PASSED,     /* all other traffic */
	STEER_REASONS,
};

struct steer_match {
	u16 local_port, remote_port;   /* first ports, host order */
	u32 local_ports, remote_ports; /* how many */
	u16 vlan;                      /* 802.1Q tag, 0 = none */
	u8 family;                     /* 4 or 6 */
	u8 pad;
};

volatile const struct steer_match steer_match = {};
volatile const enum steer_reason unused_steer_reason = STEER_REASONS; /* puts the enum into BTF, from where Go has it */

/* Our addresses, in network order; IPv4 in the first word. */
struct steer_address {
	u32 word[4];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct steer_address);
	__type(value, u8);
	__uint(map_flags, 1); /* BPF_F_NO_PREALLOC: room for many, memory for those there are */
} steer_addresses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STEER_REASONS);
	__type(key, u32);
	__type(value, u64);
} steer_reasons SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES);
	__type(key, u32);
	__type(value, u32);
} steer_sockets SEC(".maps");

static __always_inline void count_reason(u32 why)
{
	u64 *n = bpf_map_lookup_elem(&steer_reasons, &why);
	if (n)
		(*n)++;
}

static __always_inline int ours(void *d, void *end)
{
	struct steer_address a = {};
	if (steer_match.vlan) {
		if (d + ETH_LEN + 4 > end)
			return 0;
		if (ld16(d, 12) != be16(ETHERTYPE_VLAN) || (be16(ld16(d, 14)) & 0xfff) != steer_match.vlan)
			return 0;
		d += 4; /* what follows is where it is without a tag, four bytes on */
	}
	if (d + ETH_LEN + IP4_LEN + TCP_LEN > end)
		return 0;
	void *t;
	if (steer_match.family == 4) {
		u8 ver = ld8(d, 14);
		if (ld16(d, 12) != be16(ETHERTYPE_IP4) || ver >> 4 != 4 || (ver & 15) < 5 || ld8(d, 23) != PROTO_TCP)
			return 0;
		if (ld16(d, 20) & be16(0x3fff)) /* a fragment */
			return 0;
		a.word[0] = ld32(d, 30);
		t = d + ETH_LEN + (ver & 15) * 4;
	} else {
		if (ld16(d, 12) != be16(ETHERTYPE_IP6) || ld8(d, 14) >> 4 != 6 || ld8(d, 20) != PROTO_TCP)
			return 0;
		if (d + ETH_LEN + IP6_LEN + TCP_LEN > end)
			return 0;
		for (int i = 0; i < 4; i++)
			a.word[i] = ld32(d, 38 + 4 * i);
		t = d + ETH_LEN + IP6_LEN;
	}
	if (t + 4 > end)
		return 0;
	u32 remote = be16(ld16(t, 0)), local = be16(ld16(t, 2));
	if (local < steer_match.local_port || local - steer_match.local_port >= steer_match.local_ports)
		return 0;
	if (remote < steer_match.remote_port || remote - steer_match.remote_port >= steer_match.remote_ports)
		return 0;
	return bpf_map_lookup_elem(&steer_addresses, &a) != 0;
}

SEC("xdp") int steer(struct xdp_md *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (!ours(d, end)) {
		count_reason(STEER_PASSED);
		return XDP_PASS;
	}
	long verdict = bpf_redirect_map(&steer_sockets, ctx->rx_queue_index, XDP_DROP);
	count_reason(verdict == XDP_REDIRECT ? STEER_REDIRECTED : STEER_NO_SOCKET);
	return verdict;
}

char _license[] SEC("license") = "Dual BSD/GPL";
