// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Receives the run's frames without a reader: counts and checks each, then drops it. Serves as the peer of transmit tests.

#include "flow.h"
#include "seen.h"

#define SUM_BYTES 4096
#include "sum.h"

struct sink_stats {
	u64 received;        /* the run's frames, whatever their state */
	u64 bytes;           /* of these, without FCS */
	u64 unique;          /* sound, and its number seen for the first time */
	u64 duplicate;       /* sound, number seen before */
	u64 reordered;       /* unique, but a higher number of its stream came earlier (RFC 4737) */
	u64 gaps;            /* times a number was skipped */
	u64 skipped;         /* numbers skipped, whether or not they came later */
	u64 outside_window;  /* sound, but 2^20 or more below the highest: neither unique nor duplicate can be told */
	u64 contended;       /* sound, but given up on after racing with other CPUs */
	u64 other_stream;    /* stream beyond those the sink was made for */
	u64 corrupt_ip;      /* IPv4 header checksum */
	u64 corrupt_udp;     /* UDP checksum */
	u64 corrupt_payload; /* pattern */
	u64 wrong_length;    /* frame, IP and UDP lengths disagree */
	u64 latency_count, latency_sum_ns, latency_min_ns, latency_max_ns;
	u64 latency_negative;/* stamped in the future: clocks differ */
	u64 length_min, length_max; /* without FCS */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct sink_stats);
} stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1024); /* set by the loader: one per flow */
	__type(key, u32);
	__type(value, u64);
} flows SEC(".maps");

/* Next expected number of each stream. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} expected SEC(".maps");

volatile const u32 nflows = 1024;
volatile const u32 nstreams = 1;
volatile const u32 verify_udp = 0; /* off for frames whose checksum the kernel left to a device (veth) */

/* Returns whether the frame is sound, and counts what is wrong with it. */
static __always_inline int check(struct xdp_md *ctx, struct sink_stats *s, u32 udp, u32 len)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *u = d + udp;
	if (udp > 64 || u + UDP_LEN + STAMP_LEN > end)
		return 0; /* classify saw to it */
	u32 ip_len; /* from the IP header on */
	if (match.family == 4) {
		ip_len = be16(ld16(d, 16));
		u64 sum = 0;
#pragma unroll
		for (int i = 0; i < 5; i++)
			sum += ld32(d, 14 + 4 * i);
		if (csum_fold(sum) != 0xffff) {
			s->corrupt_ip++;
			return 0;
		}
	} else {
		ip_len = be16(ld16(d, 18)) + IP6_LEN;
	}
	u32 udp_len = be16(ld16(u, 4)), want = ETH_LEN + ip_len;
	/* Ethernet pads to 60 bytes. */
	if (udp + udp_len != want || udp_len < UDP_LEN + STAMP_LEN || (len != want && !(want < 60 && len == 60))) {
		s->wrong_length++;
		return 0;
	}
	if (verify_udp) {
		u64 sum = be16(PROTO_UDP) + (u64)ld16(u, 4);
		int zero = !ld16(u, 6);
		if (match.family == 4)
			sum += (u64)ld32(d, 26) + ld32(d, 30);
		else
#pragma unroll
			for (int i = 0; i < 8; i++)
				sum += ld32(d, 22 + 4 * i);
		sum += sum_bytes(ctx, udp, udp_len);
		if (csum_fold(sum) != 0xffff && !(match.family == 4 && zero)) {
			s->corrupt_udp++;
			return 0;
		}
	}
	if (!pattern_ok(u + UDP_LEN, end, udp_len - UDP_LEN)) {
		s->corrupt_payload++;
		return 0;
	}
	return 1;
}

static __always_inline void latency(struct sink_stats *s, u64 at)
{
	u64 now = bpf_ktime_get_ns();
	if (now < at) {
		s->latency_negative++;
		return;
	}
	u64 l = now - at;
	if (!s->latency_count || l < s->latency_min_ns)
		s->latency_min_ns = l;
	if (l > s->latency_max_ns)
		s->latency_max_ns = l;
	s->latency_sum_ns += l;
	s->latency_count++;
}

static __always_inline void sequence(struct sink_stats *s, u32 stream, u64 number)
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
	u64 *next = bpf_map_lookup_elem(&expected, &stream);
	if (!next)
		return;
	/* Not atomic: order is only defined while a stream arrives on one CPU. */
	if (number < *next) {
		s->reordered++;
		return;
	}
	if (number > *next) {
		s->gaps++;
		s->skipped += number - *next;
	}
	*next = number + 1;
}

SEC("xdp") int sink(struct xdp_md *ctx)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 udp = 0, zero = 0;
	int why = classify(d, end, &udp);
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
	struct sink_stats *s = bpf_map_lookup_elem(&stats, &zero);
	if (!s)
		return XDP_ABORTED;

	u32 len = bpf_xdp_get_buff_len(ctx);
	s->received++;
	s->bytes += len;
	if (!s->length_min || len < s->length_min)
		s->length_min = len;
	if (len > s->length_max)
		s->length_max = len;
	u32 flow = (u32)(be16(ld16(u, 0)) - match.src_port_first) & 0xffff;
	flow %= nflows;
	u64 *f = bpf_map_lookup_elem(&flows, &flow);
	if (f)
		(*f)++;

	u32 hi = be16(ld16(u, UDP_LEN + 4));
	u64 number = (u64)(hi & 0xff) << 32 | be32(ld32(u, UDP_LEN + 6));
	u64 at = be64(ld64(u, UDP_LEN + 10));
	if (!check(ctx, s, udp, len))
		return XDP_DROP;
	latency(s, at);
	sequence(s, hi >> 8, number);
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
