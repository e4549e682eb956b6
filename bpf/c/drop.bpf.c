// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Drops the run's frames as early as the driver allows: the ceiling of this rig, which no receiver can exceed.

#include "flow.h"

SEC("xdp") int drop(struct xdp_md *ctx)
{
	u32 udp = 0;
	int why = classify((void *)(long)ctx->data, (void *)(long)ctx->data_end, &udp);
	if (why != OURS) {
		count(why);
		return XDP_PASS;
	}
	count_queue(ctx);
	count(REASON_DROPPED);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
