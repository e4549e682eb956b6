/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The histogram of meters that note how long answers took. */
#ifndef TWOPATH_LATENCY_H
#define TWOPATH_LATENCY_H

#include "kernel.h"

/* Latencies go into a log-linear histogram: below 2^SUB_BITS ns a bucket is 1 ns wide, above that every power of two is
 * cut into 2^SUB_BITS buckets, so a bucket is never wider than 1/128 = 0.8 % of its values. The last one also takes what
 * is above 2^(TOP+1) ns = 137 s. */
#define SUB_BITS 7
#define SUB (1 << SUB_BITS)
#define TOP 36
#define BUCKETS ((TOP - SUB_BITS + 2) * SUB)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, BUCKETS);
	__type(key, u32);
	__type(value, u64);
} latencies SEC(".maps");

/* The bucket of a latency; *over says that there is none high enough. */
static __always_inline u32 bucket(u64 ns, u32 *over)
{
	*over = 0;
	if (ns < SUB)
		return ns;
	if (ns >> (TOP + 1)) {
		*over = 1;
		return BUCKETS - 1;
	}
	u32 e = 0; /* floor(log2(ns)) */
	u64 v = ns;
	if (v >> 32) { e += 32; v >>= 32; }
	if (v >> 16) { e += 16; v >>= 16; }
	if (v >> 8) { e += 8; v >>= 8; }
	if (v >> 4) { e += 4; v >>= 4; }
	if (v >> 2) { e += 2; v >>= 2; }
	if (v >> 1)
		e++;
	u32 shift = (e - SUB_BITS) & 31;
	return shift * SUB + (u32)(ns >> shift);
}

/* Counts a latency; returns 1 when it is beyond the histogram. */
static __always_inline u32 note_latency(u64 ns)
{
	u32 over, key = bucket(ns, &over);
	u64 *n = bpf_map_lookup_elem(&latencies, &key);
	if (n)
		(*n)++;
	return over;
}

#endif
