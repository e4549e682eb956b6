// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sends the run's requests back from the driver: what an echo takes when the responder costs next to nothing. Exchanging
// addresses and ports leaves every checksum right.

#include "flow.h"

#define swap(ld, st, p, a, b) do { typeof(ld(p, a)) x = ld(p, a), y = ld(p, b); st(p, a, y); st(p, b, x); } while (0)

SEC("xdp") int reflect(struct xdp_md *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 udp = 0;
	int why = classify(d, end, &udp);
	if (why != OURS) {
		count(why);
		return XDP_PASS;
	}
	if (match.family == 4) {
		if (d + ETH_LEN + IP4_LEN + UDP_LEN > end)
			return XDP_ABORTED; /* classify saw to it */
		swap(ld32, st32, d, 26, 30);
		swap(ld16, st16, d, ETH_LEN + IP4_LEN, ETH_LEN + IP4_LEN + 2);
	} else {
		if (d + ETH_LEN + IP6_LEN + UDP_LEN > end)
			return XDP_ABORTED;
#pragma unroll
		for (int i = 0; i < 4; i++)
			swap(ld32, st32, d, 22 + 4 * i, 38 + 4 * i);
		swap(ld16, st16, d, ETH_LEN + IP6_LEN, ETH_LEN + IP6_LEN + 2);
	}
	swap(ld32, st32, d, 0, 6);
	swap(ld16, st16, d, 4, 10);
	count_queue(ctx);
	count(REASON_COUNTED);
	return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
