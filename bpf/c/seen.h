/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What meters tell of each frame of the run: whether its number came before, and whether its payload is the pattern. */
#ifndef TWOPATH_SEEN_H
#define TWOPATH_SEEN_H

#include "packet.h"

#define STREAM_WORDS 32768 /* of 32 numbers each: a window of 2^20 */

/* The numbers seen. A word holds in its low half one bit for each of 32 numbers, and in its high half 1 + number >> 20,
 * so that a word of an older lap is recognised and started afresh instead of having to be cleared. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STREAM_WORDS); /* set by the loader: times streams */
	__type(key, u32);
	__type(value, u64);
} seen SEC(".maps");

enum verdict { FIRST, AGAIN, TOO_OLD, CONTENDED };

static __always_inline enum verdict mark(u32 stream, u64 number)
{
	u32 key = stream * STREAM_WORDS + ((u32)(number >> 5) & (STREAM_WORDS - 1));
	u64 *word = bpf_map_lookup_elem(&seen, &key);
	if (!word)
		return CONTENDED;
	u64 lap = (number >> 20) + 1, bit = 1ull << (number & 31);
	for (int i = 0; i < 8; i++) {
		u64 old = READ_ONCE(*word), have = old >> 32, new;
		if (have > lap)
			return TOO_OLD;
		if (have == lap && (old & bit))
			return AGAIN;
		new = have == lap ? old | bit : lap << 32 | bit;
		if (__sync_val_compare_and_swap(word, old, new) == old)
			return FIRST;
	}
	return CONTENDED;
}

static __always_inline int byte_ok(void *payload, void *end, u32 i)
{
	if (i < STAMP_LEN || i > 9000)
		return 1;
	void *p = payload + i;
	if (p + 1 > end)
		return 1; /* beyond the linear part */
	return ld8(p, 0) == (u8)i;
}

/* Whether a payload of n bytes holds the pattern at its first, middle and last byte. */
static __always_inline int pattern_ok(void *payload, void *end, u32 n)
{
	return byte_ok(payload, end, n > STAMP_LEN ? STAMP_LEN : 0) && byte_ok(payload, end, n / 2) && byte_ok(payload, end, n - 1);
}

#endif
