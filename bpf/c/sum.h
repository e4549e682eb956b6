/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The checksum of a whole datagram. SUM_BYTES, defined before, is the longest that can be summed. */
#ifndef TWOPATH_SUM_H
#define TWOPATH_SUM_H

#include "packet.h"

/* One's complement sum of n bytes from byte off of the frame, folded; a global function, so that the verifier walks the
 * loop once. Returns 0 (which is no valid folded sum of a UDP datagram) when the frame is shorter. */
__noinline u32 sum_bytes(struct xdp_md *ctx, u32 off, u32 n)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u64 sum = 0;
	if (off > 64)
		return 0;
	void *p = d + off;
	for (u32 i = 0; i < SUM_BYTES / 8 && n >= 8; i++) {
		if (p + 8 > end)
			return 0;
		sum += (u64)ld32(p, 0) + ld32(p, 4);
		p += 8;
		n -= 8;
		asm volatile("" : "+r"(p)); /* or clang calculates with end, which the verifier forbids */
	}
	if (n & 4) {
		if (p + 4 > end)
			return 0;
		sum += ld32(p, 0);
		p += 4;
	}
	if (n & 2) {
		if (p + 2 > end)
			return 0;
		sum += ld16(p, 0);
		p += 2;
	}
	if (n & 1) {
		if (p + 1 > end)
			return 0;
		sum += ld8(p, 0);
	}
	if (n & ~7)
		return 0;
	return csum_fold(sum);
}

#endif
