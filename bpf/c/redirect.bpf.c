// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Hands the run's frames to the AF_XDP socket of the queue they arrived on; all other traffic goes on to the kernel.

#include "flow.h"

/* What becomes of the run's frames on a queue without a socket: XDP_DROP or XDP_PASS. */
volatile const u32 no_socket = XDP_DROP;

/* Fragments between the run's addresses are the run's too. Only the first fragment of a datagram has ports, and none but it a
 * stamp: whose they are is known when the datagram is whole, so those of other flows between the two addresses go along. */
volatile const u32 fragments = 0;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES);
	__type(key, u32);
	__type(value, u32);
} sockets SEC(".maps");

/* The run's frames, and no others, told by few loads: IPv4 without options or fragments, UDP, addresses, ports and run as
 * wanted, none left open. Frames that fail it are looked at again by classify, which knows all cases. */
static __always_inline int plainly_ours(void *d, void *end)
{
	if (match.family != 4 || match.any_src || match.any_dst || match.any_run || !match.any_mac || !match.src_ports)
		return 0;
	if (d + ETH_LEN + IP4_LEN + UDP_LEN + STAMP_LEN > end)
		return 0;
	u32 port = be16(ld16(d, 34)) - match.src_port_first;
	/* type, version and length; fragment field and protocol (TTL between them); both addresses; port; run */
	return (ld32(d, 12) & 0x00ffffff) == (be16(ETHERTYPE_IP4) | 0x45 << 16) &&
	       (ld32(d, 20) & 0xff00ff3f) == (u32)PROTO_UDP << 24 &&
	       ld32(d, 26) == match.src[0] && ld32(d, 30) == match.dst[0] &&
	       ld16(d, 36) == be16(match.dst_port) && port < match.src_ports && ld32(d, 42) == be32(match.run);
}

SEC("xdp") int redirect(struct xdp_md *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (!plainly_ours(d, end)) {
		u32 udp = 0;
		int why = classify(d, end, &udp);
		if (why != OURS && !(fragments && why == REASON_FRAGMENT)) {
			count(why);
			return XDP_PASS;
		}
	}
	/* One counter a frame on the way that matters: what was redirected is what came less what found no socket. */
	count_queue(ctx);
	/* The low bits of the flags are the verdict for an empty slot (net/xdp/xskmap.c). */
	long verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index, no_socket);
	if (verdict != XDP_REDIRECT)
		count(REASON_NO_SOCKET);
	return verdict;
}

char _license[] SEC("license") = "Dual BSD/GPL";
