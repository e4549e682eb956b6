// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// A packet generator: shapes and sends one frame per slot (pace.h).
// Pages come back as the receiver left them (GRO and forwarding rewrite headers in place), so every header byte, the
// stamp and both checksums are written on every frame.

#include "pace.h"
#include "packet.h"

#define SIZES 16
#define HEADER_WORDS 8

/* What depends on the size of a frame only. 16-bit fields are as they stand in memory. */
struct size {
	u32 frame_len;  /* bytes handed to the driver (no FCS) */
	u32 udp_sum;    /* one's complement sum of all that is constant under the UDP checksum at this size, memory order */
	u16 ip_len;     /* IPv4 total length or IPv6 payload length */
	u16 ip_check;   /* IPv4 header checksum */
	u16 udp_len;
	u16 pad;
};

struct generator_state {
	struct pace pace;
	u64 duplicates;      /* of the frames sent, on purpose for the second time */
	u64 number;          /* next number */
	u64 again;           /* 1: the next frame repeats number - 1 */
	u64 asked_ns;        /* ping-pong: when the request that is out was sent */
	u64 abandoned;       /* ping-pong: requests that were waited for in vain */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct generator_state);
} state SEC(".maps");

/* 1 + the highest number answered, by stream: echometer.bpf.c writes it. */
struct answer {
	u64 next;
	u64 pad[7];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct answer);
} answers SEC(".maps");

volatile const struct size sizes[SIZES] = {};
volatile const u64 header[HEADER_WORDS] = {}; /* Ethernet to UDP, variable fields zero */
volatile const u32 nsizes = 1;
volatile const u32 family = 4;
volatile const u32 run = 0;
volatile const u32 flows = 1;
volatile const u32 source_port = 10000;
volatile const u64 stream = 0;
volatile const u32 pingpong = 0;      /* 1: one request at a time, the next when the reply is in */
volatile const u64 give_up_ns = 0;    /* ping-pong: how long a reply is waited for */

/* Faults, each on every n-th number (swap: every n-th pair); 0 = never, and then the verifier removes the code. */
volatile const u32 fault_checksum = 0;
volatile const u32 fault_duplicate = 0;
volatile const u32 fault_swap = 0;
volatile const u32 fault_run = 0;
volatile const u32 fault_mac = 0;
volatile const u32 fault_payload = 0;

/* Ping-pong: the next request goes when the one before is answered, or was waited for long enough, and not sooner after it
 * than the interval. Its time is that of sending. */
static __always_inline int turn(struct generator_state *s, u64 now, u64 *due)
{
	struct pace *p = &s->pace;
	if (p->start_ns) {
		if (p->due_ns > now)
			return 0;
		u32 key = stream;
		struct answer *a = bpf_map_lookup_elem(&answers, &key);
		if (!a)
			return 0;
		if (READ_ONCE(a->next) != s->number) {
			if (now - s->asked_ns < give_up_ns)
				return 0;
			s->abandoned++;
		}
		now = bpf_ktime_get_ns(); /* not the time before the look at the answer */
	} else {
		p->start_ns = now;
	}
	s->asked_ns = now;
	p->due_ns = now + interval_ns;
	*due = now;
	return 1;
}

/* Chooses the number the next frame carries. */
static __always_inline u64 next_number(struct generator_state *s)
{
	u64 n = s->number;
	if (fault_duplicate && s->again) {
		n--;
		s->again = 0;
		s->duplicates++;
	} else {
		s->number = n + 1;
		if (fault_duplicate && (n + 1) % fault_duplicate == 0)
			s->again = 1;
	}
	/* A pair is exchanged only when both of it will be sent. */
	if (fault_swap && (n >> 1) % fault_swap == 0 && (!limit || (n | 1) < limit))
		n ^= 1;
	return n;
}

SEC("xdp") int generate(struct xdp_md *ctx)
{
	u32 key = 0;
	struct generator_state *s = bpf_map_lookup_elem(&state, &key);
	if (!s)
		return XDP_ABORTED;
	struct pace *p = &s->pace;
	u64 now = bpf_ktime_get_ns(), due = 0;
	if (!running(p, now))
		return XDP_DROP;
	now = wait_for(p->due_ns, now);
	if (!(pingpong ? turn(s, now, &due) : slot(p, now, &due)))
		return XDP_DROP;
	u64 n = next_number(s);

	u32 k = nsizes > 1 ? n % nsizes : 0;
	volatile const struct size *z = &sizes[k & (SIZES - 1)];
	u32 have = ctx->data_end - ctx->data;
	if (nsizes > 1 && have != z->frame_len && bpf_xdp_adjust_tail(ctx, (int)z->frame_len - (int)have)) {
		p->failed++;
		return XDP_ABORTED;
	}

	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *u; /* UDP header */
	if (family == 4) {
		if (d + ETH_LEN + IP4_LEN + UDP_LEN + STAMP_LEN > end)
			goto failed;
#pragma unroll
		for (int i = 0; i < 5; i++)
			st64(d, 8 * i, header[i]);
		st16(d, 16, z->ip_len);
		st16(d, 24, z->ip_check);
		u = d + ETH_LEN + IP4_LEN;
	} else {
		if (d + ETH_LEN + IP6_LEN + UDP_LEN + STAMP_LEN > end)
			goto failed;
#pragma unroll
		for (int i = 0; i < 7; i++)
			st64(d, 8 * i, header[i]);
		st16(d, 56, header[7]);
		st16(d, 18, z->ip_len);
		u = d + ETH_LEN + IP6_LEN;
	}
	if (fault_mac && n % fault_mac == 0)
		st8(d, 5, (u8)(header[0] >> 40) ^ 0xff);

	u16 port = be16(source_port + (flows > 1 ? n % flows : 0));
	u32 id = be32(fault_run && n % fault_run == 0 ? run + 1 : run);
	u16 hi = be16((u16)(stream << 8 | (n >> 32 & 0xff)));
	u32 lo = be32((u32)n);
	u64 at = be64(due);
	st16(u, 0, port);
	st16(u, 4, z->udp_len);
	st32(u, UDP_LEN, id);
	st16(u, UDP_LEN + 4, hi);
	st32(u, UDP_LEN + 6, lo);
	st64(u, UDP_LEN + 10, at);
	u64 sum = (u64)z->udp_sum + port + id + hi + lo + (at & 0xffffffff) + (at >> 32);
	if (fault_payload && u + UDP_LEN + STAMP_LEN + 2 <= end) {
		/* The checksum covers the damage: only a reader that looks at the content can tell. */
		u16 good = STAMP_LEN | (STAMP_LEN + 1) << 8, bad = n % fault_payload == 0 ? good ^ 0xff : good;
		st16(u, UDP_LEN + STAMP_LEN, bad);
		sum += bad + (u16)~good;
	}
	u16 check = ~csum_fold(sum);
	if (!check)
		check = 0xffff; /* RFC 768: 0 means none */
	if (fault_checksum && n % fault_checksum == 0)
		check = check == 0x5555 ? 0x1234 : check ^ 0x5555;
	st16(u, 6, check);

	return send(p, now, limit);
failed:
	p->failed++;
	return XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
