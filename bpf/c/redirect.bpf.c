// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Hands the run's frames to the AF_XDP socket of the queue they arrived on; all other traffic goes on to the kernel.

#include "flow.h"

/* What becomes of the run's frames on a queue without a socket: XDP_DROP or XDP_PASS. */
volatile const u32 no_socket = XDP_DROP;

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, QUEUES);
	__type(key, u32);
	__type(value, u32);
} sockets SEC(".maps");

SEC("xdp") int redirect(struct xdp_md *ctx)
{
	u32 udp = 0;
	int why = classify((void *)(long)ctx->data, (void *)(long)ctx->data_end, &udp);
	if (why != OURS) {
		count(why);
		return XDP_PASS;
	}
	count_queue(ctx);
	/* The low bits of the flags are the verdict for an empty slot (net/xdp/xskmap.c). */
	long verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index, no_socket);
	count(verdict == XDP_REDIRECT ? REASON_REDIRECTED : REASON_NO_SOCKET);
	return verdict;
}

char _license[] SEC("license") = "Dual BSD/GPL";
