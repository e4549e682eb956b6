// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// The yardstick of echo tests, on the device that the requests leave from: takes the replies to the run's requests out
// before anything else touches them, notes how long each took, follows their numbers, and drops them. In ping-pong it
// also tells the generator that the next request may go.

#include "latency.h"
#include "reply.h"
#include "seen.h"

struct echo_stats {
	u64 received;        /* replies of the run, whatever their state */
	u64 bytes;           /* of these, without FCS */
	u64 unique;          /* sound, and its number seen for the first time */
	u64 duplicate;       /* sound, number seen before */
	u64 reordered;       /* unique, but a higher number of its stream came earlier (RFC 4737) */
	u64 outside_window;  /* sound, but 2^20 or more below the highest: neither unique nor duplicate can be told */
	u64 contended;       /* sound, but given up on after racing with other CPUs */
	u64 other_stream;    /* stream beyond those the meter was made for */
	u64 corrupt_payload; /* pattern */
	u64 wrong_length;    /* frame, IP and UDP lengths disagree */
	u64 latency_count, latency_sum_ns, latency_min_ns, latency_max_ns; /* of unique replies */
	u64 latency_over;    /* in the last bucket for want of a higher one */
	u64 latency_negative;/* stamped in the future: another host's clock */
	u64 ipdv_count, ipdv_sum_ns; /* |difference of latency| of numbers that follow each other (RFC 3393) */
	u64 first_ns, last_ns; /* arrival, CLOCK_MONOTONIC */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct echo_stats);
} stats SEC(".maps");

struct stream_state {
	u64 next;       /* 1 + highest number that came */
	u64 last;       /* 1 + number that came last */
	u64 latency_ns; /* of that */
	u64 pad[5];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct stream_state);
} streams SEC(".maps");

/* 1 + the highest number answered: what the generator waits for in ping-pong (generate.bpf.c reads it). */
struct answer {
	u64 next;
	u64 pad[7]; /* a cache line of its own for each stream */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct answer);
} answers SEC(".maps");

volatile const u32 nstreams = 1;

/* Returns whether the reply is whole: lengths, and the pattern at its first, middle and last byte. The UDP checksum cannot
 * be looked at: the kernel leaves it to the device, and a veth never fills it in. */
static __always_inline int whole(void *d, void *end, struct echo_stats *s, u32 udp, u32 len)
{
	void *u = d + udp;
	if (udp > 64 || u + UDP_LEN + STAMP_LEN > end)
		return 0; /* classify_reply saw to it */
	u32 ip_len = match.family == 4 ? be16(ld16(d, 16)) : be16(ld16(d, 18)) + IP6_LEN;
	u32 udp_len = be16(ld16(u, 4)), want = ETH_LEN + ip_len;
	/* Ethernet pads to 60 bytes. */
	if (udp + udp_len != want || udp_len < UDP_LEN + STAMP_LEN || (len != want && !(want < 60 && len == 60))) {
		s->wrong_length++;
		return 0;
	}
	if (!pattern_ok(u + UDP_LEN, end, udp_len - UDP_LEN)) {
		s->corrupt_payload++;
		return 0;
	}
	return 1;
}

/* Notes a latency, and how much it differs from that of the number before. */
static __always_inline void latency(struct echo_stats *s, struct stream_state *t, u64 now, u64 at, u64 number)
{
	if (now < at) {
		s->latency_negative++;
		return;
	}
	u64 l = now - at;
	s->latency_over += note_latency(l);
	if (!s->latency_count || l < s->latency_min_ns)
		s->latency_min_ns = l;
	if (l > s->latency_max_ns)
		s->latency_max_ns = l;
	s->latency_sum_ns += l;
	s->latency_count++;
	if (t->last && t->last == number) {
		s->ipdv_count++;
		s->ipdv_sum_ns += l > t->latency_ns ? l - t->latency_ns : t->latency_ns - l;
	}
	t->last = number + 1;
	t->latency_ns = l;
}

/* Accounts a whole reply. What belongs to a stream is not atomic: its replies arrive on one CPU. */
static __always_inline void account(struct echo_stats *s, u32 stream, u64 number, u64 now, u64 at)
{
	if (stream >= nstreams) {
		s->other_stream++;
		return;
	}
	switch (mark(stream, number)) {
	case AGAIN:
		s->duplicate++;
		return;
	case TOO_OLD:
		s->outside_window++;
		return;
	case CONTENDED:
		s->contended++;
		return;
	case FIRST:
		break;
	}
	s->unique++;
	struct answer *a = bpf_map_lookup_elem(&answers, &stream);
	if (a && number >= a->next)
		*(volatile u64 *)&a->next = number + 1;
	struct stream_state *t = bpf_map_lookup_elem(&streams, &stream);
	if (!t)
		return;
	latency(s, t, now, at, number);
	if (number < t->next)
		s->reordered++;
	else
		t->next = number + 1;
}

SEC("xdp") int echometer(struct xdp_md *ctx)
{
	u64 now = bpf_ktime_get_ns();
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 udp = 0, zero = 0;
	int why = classify_reply(d, end, &udp);
	if (why != OURS) {
		count(why);
		return XDP_PASS;
	}
	void *u = d + udp;
	if (udp > 64 || u + UDP_LEN + STAMP_LEN > end) {
		count(REASON_TOO_SHORT);
		return XDP_PASS;
	}
	count_queue(ctx);
	count(REASON_COUNTED);
	struct echo_stats *s = bpf_map_lookup_elem(&stats, &zero);
	if (!s)
		return XDP_ABORTED;
	u32 len = bpf_xdp_get_buff_len(ctx);
	s->received++;
	s->bytes += len;
	if (!s->first_ns)
		s->first_ns = now;
	s->last_ns = now;
	u32 hi = be16(ld16(u, UDP_LEN + 4));
	u64 number = (u64)(hi & 0xff) << 32 | be32(ld32(u, UDP_LEN + 6));
	u64 at = be64(ld64(u, UDP_LEN + 10));
	if (whole(d, end, s, udp, len))
		account(s, hi >> 8, number, now, at);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
