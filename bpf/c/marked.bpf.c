// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Hands all frames of a replay to the AF_XDP socket of the queue they arrived on, whatever they carry, and passes all others.
// They are told by their source MAC address, which begins with the run's mark (internal/packet/mark.go). Program and maps are
// named as those of redirect, so that user space sees one kind of program.

#include "flow.h"

/* The first three bytes of the source address, as they stand in memory. */
volatile const u32 mark = 0;
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
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	if (d + ETH_LEN > end) {
		count(REASON_TOO_SHORT);
		return XDP_PASS;
	}
	if ((ld32(d, 6) & 0xffffff) != mark) {
		count(REASON_FOREIGN_RUN);
		return XDP_PASS;
	}
	count_queue(ctx);
	long verdict = bpf_redirect_map(&sockets, ctx->rx_queue_index, no_socket);
	if (verdict != XDP_REDIRECT)
		count(REASON_NO_SOCKET);
	return verdict;
}

char _license[] SEC("license") = "Dual BSD/GPL";
