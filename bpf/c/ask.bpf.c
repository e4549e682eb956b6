// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Asks questions and checks the answers: requests of a request-and-response protocol whose messages start with a 16-bit id
// (DNS), prepared by user space together with the answer each must get.
//
// ask sends the next request when it is due (pace.h). answers is attached to the same device: it takes the replies out,
// finds the request by port and id, compares the reply with the expected one byte for byte, notes the latency from the
// request's intended time, and drops it.

#include "latency.h"
#include "pace.h"
#include "reply.h"

#define SUM_BYTES 1600
#include "sum.h"

static long (*bpf_xdp_store_bytes)(struct xdp_md *ctx, u32 offset, const void *from, u32 len) = (void *)190;

#define REQUEST_MAX 352  /* a frame: headers over IPv6, and a query with the longest name and an OPT record */
#define REPLY_WORDS 154  /* of 8 bytes: a message of 1,232 */
#define DNS_HEADER 12
#define CPUS 512

/* A request, as it is sent but for id, source port and checksum. */
struct request {
	u32 len;      /* bytes handed to the driver */
	u32 sum;      /* one's complement sum of all that is constant under the UDP checksum, memory order */
	u8 frame[REQUEST_MAX];
};

/* The reply it must get. */
struct expected {
	u32 len;      /* of the message, bytes */
	u32 question; /* bytes of the question behind the header */
	u64 words[REPLY_WORDS + 1]; /* zeros behind the message */
};

/* A request that is out. */
struct slot {
	u64 due_ns;
	u64 number; /* 1 + its number; 0 = answered, or never used */
};

struct ask_state {
	struct pace pace;
	u64 forgotten;       /* requests without an answer when their port and id were used again */
	u64 pad[5];          /* to a multiple of a cache line: streams run on different CPUs */
};

struct answer_stats {
	u64 received;        /* replies to the run's ports, whatever their state */
	u64 bytes;           /* of these, without FCS */
	u64 right;           /* what was expected */
	u64 unasked;         /* no request was out with this port and id: a second reply, or to another's question */
	u64 wrong_question;  /* repeats another question than was asked */
	u64 wrong_code;      /* another response code than expected */
	u64 wrong_answer;    /* differs elsewhere */
	u64 malformed;       /* lengths disagree, or too short for a header */
	u64 corrupt_ip;      /* IPv4 header checksum */
	u64 corrupt_udp;     /* UDP checksum, neither right nor left to a device */
	u64 partial;         /* sound, the checksum left to a device by the sending kernel; counted elsewhere too */
	u64 truncated;       /* right, and with TC set; counted elsewhere too */
	u64 codes[16];       /* replies that were asked for, by response code */
	u64 latency_count, latency_sum_ns, latency_min_ns, latency_max_ns; /* of right ones */
	u64 latency_over;    /* in the last bucket for want of a higher one */
	u64 first_ns, last_ns; /* arrival, CLOCK_MONOTONIC */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* streams */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct ask_state);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* questions */
	__type(key, u32);
	__type(value, struct request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* questions */
	__type(key, u32);
	__type(value, struct expected);
} expected SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 65536); /* times flows */
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct answer_stats);
} stats SEC(".maps");

volatile const u8 stream_of[CPUS] = {}; /* of each CPU that asks */
volatile const u32 nstreams = 1;
volatile const u32 nrequests = 1;
volatile const u32 flows = 1;
volatile const u64 limit_more = 0;    /* streams below this number send one frame more than limit */

SEC("xdp") int ask(struct xdp_md *ctx)
{
	u32 cpu = bpf_get_smp_processor_id();
	if (cpu >= CPUS)
		return XDP_ABORTED;
	u32 stream = stream_of[cpu];
	struct ask_state *s = bpf_map_lookup_elem(&state, &stream);
	if (!s)
		return XDP_ABORTED;
	struct pace *p = &s->pace;
	u64 now = bpf_ktime_get_ns(), due = 0;
	if (!running(p, now))
		return XDP_DROP;
	now = wait_for(p->due_ns, now);
	if (!slot(p, now, &due))
		return XDP_DROP;

	u64 number = p->sent * nstreams + stream;
	u32 key = number % nrequests;
	struct request *q = bpf_map_lookup_elem(&requests, &key);
	if (!q)
		goto failed;
	u32 len = q->len;
	if (len < ETH_LEN + IP4_LEN + UDP_LEN + DNS_HEADER || len > REQUEST_MAX)
		goto failed;
	u32 have = ctx->data_end - ctx->data;
	if (have != len && bpf_xdp_adjust_tail(ctx, (int)len - (int)have))
		goto failed;
	if (bpf_xdp_store_bytes(ctx, 0, q->frame, len))
		goto failed;
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *u = d + (match.family == 4 ? ETH_LEN + IP4_LEN : ETH_LEN + IP6_LEN);
	if (u + UDP_LEN + DNS_HEADER > end)
		goto failed;

	u32 flow = number % flows, place = (u32)(number / flows) & 0xffff;
	u16 port = be16((u16)(match.src_port_first + flow)), id = be16((u16)place);
	st16(u, 0, port);
	st16(u, UDP_LEN, id);
	u16 check = ~csum_fold((u64)q->sum + port + id);
	if (!check)
		check = 0xffff; /* RFC 768: 0 means none */
	st16(u, 6, check);

	key = place * flows + flow;
	struct slot *t = bpf_map_lookup_elem(&slots, &key);
	if (!t)
		goto failed;
	if (READ_ONCE(t->number))
		s->forgotten++;
	t->due_ns = due;
	*(volatile u64 *)&t->number = number + 1;

	return send(p, now, limit ? limit + (stream < limit_more) : 0);
failed:
	p->failed++;
	p->done = 1;
	return XDP_ABORTED;
}

/* Whether the message of n bytes from byte off of the frame is the expected one, but for its id. */
__noinline int same(struct xdp_md *ctx, u32 off, u32 key, u32 n)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct expected *e = bpf_map_lookup_elem(&expected, &key);
	if (!e || off > 64 || n != e->len)
		return 0;
	void *p = d + off;
	u64 differ = 0;
	u32 i;
	for (i = 0; i < REPLY_WORDS && n >= 8; i++) {
		if (p + 8 > end)
			return 0;
		u64 w = ld64(p, 0) ^ e->words[i];
		differ |= i ? w : w & ~0xffffull;
		p += 8;
		n -= 8;
		asm volatile("" : "+r"(p));
	}
	u64 last = 0;
	u32 shift = 0;
	if (n & 4) {
		if (p + 4 > end)
			return 0;
		last = ld32(p, 0);
		p += 4;
		shift = 32;
	}
	if (n & 2) {
		if (p + 2 > end)
			return 0;
		last |= (u64)ld16(p, 0) << shift;
		p += 2;
		shift += 16;
	}
	if (n & 1) {
		if (p + 1 > end)
			return 0;
		last |= (u64)ld8(p, 0) << shift;
	}
	if (n & ~7 || i > REPLY_WORDS)
		return 0;
	differ |= last ^ e->words[i];
	return !differ;
}

/* Whether the message repeats the question that was asked. Only called to say what is wrong with a reply. */
__noinline int same_question(struct xdp_md *ctx, u32 off, u32 key)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct expected *e = bpf_map_lookup_elem(&expected, &key);
	if (!e || off > 64)
		return 0;
	u8 *want = (u8 *)e->words;
	void *p = d + off + DNS_HEADER;
	for (u32 i = 0; i < 260 && i < e->question; i++) {
		if (p + 1 > end || ld8(p, 0) != want[DNS_HEADER + i])
			return 0;
		p += 1;
		asm volatile("" : "+r"(p));
	}
	return 1;
}

static __always_inline void latency(struct answer_stats *s, u64 l)
{
	s->latency_over += note_latency(l);
	if (!s->latency_count || l < s->latency_min_ns)
		s->latency_min_ns = l;
	if (l > s->latency_max_ns)
		s->latency_max_ns = l;
	s->latency_sum_ns += l;
	s->latency_count++;
}

/* Returns whether lengths agree and checksums are right, and counts what is wrong. A kernel leaves the UDP checksum to the
 * device, which a veth never fills in: then the field holds the sum of the pseudo header alone. */
static __always_inline int sound(struct xdp_md *ctx, struct answer_stats *s, u32 udp, u32 len)
{
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	void *u = d + udp;
	if (udp > 64 || u + UDP_LEN > end)
		return 0; /* classify_reply saw to it */
	u32 ip_len = match.family == 4 ? be16(ld16(d, 16)) : be16(ld16(d, 18)) + IP6_LEN;
	u32 udp_len = be16(ld16(u, 4)), want = ETH_LEN + ip_len;
	/* Ethernet pads to 60 bytes. */
	if (udp + udp_len != want || udp_len < UDP_LEN + DNS_HEADER || (len != want && !(want < 60 && len == 60))) {
		s->malformed++;
		return 0;
	}
	u64 pseudo = be16(PROTO_UDP) + (u64)ld16(u, 4);
	if (match.family == 4) {
		u64 sum = 0;
#pragma unroll
		for (int i = 0; i < 5; i++)
			sum += ld32(d, 14 + 4 * i);
		if (csum_fold(sum) != 0xffff) {
			s->corrupt_ip++;
			return 0;
		}
		pseudo += (u64)ld32(d, 26) + ld32(d, 30);
	} else {
#pragma unroll
		for (int i = 0; i < 8; i++)
			pseudo += ld32(d, 22 + 4 * i);
	}
	u16 check = ld16(u, 6);
	if (check && csum_fold(pseudo + sum_bytes(ctx, udp, udp_len)) == 0xffff)
		return 1;
	if (check && check == csum_fold(pseudo)) {
		s->partial++;
		return 1;
	}
	s->corrupt_udp++;
	return 0;
}

SEC("xdp") int answers(struct xdp_md *ctx)
{
	u64 now = bpf_ktime_get_ns();
	void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u32 udp = 0, key = 0;
	int why = classify_reply(d, end, &udp);
	if (why != OURS) {
		count(why);
		return XDP_PASS;
	}
	count_queue(ctx);
	count(REASON_COUNTED);
	struct answer_stats *s = bpf_map_lookup_elem(&stats, &key);
	if (!s)
		return XDP_ABORTED;
	u32 len = bpf_xdp_get_buff_len(ctx);
	s->received++;
	s->bytes += len;
	if (!s->first_ns)
		s->first_ns = now;
	s->last_ns = now;
	if (!sound(ctx, s, udp, len))
		return XDP_DROP;
	d = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	void *u = d + udp;
	if (udp > 64 || u + UDP_LEN + DNS_HEADER > end)
		return XDP_DROP; /* sound saw to it */
	u32 flow = (be16(ld16(u, 2)) - match.src_port_first) & 0xffff, udp_len = be16(ld16(u, 4));
	u8 flags = ld8(u, UDP_LEN + 2), code = ld8(u, UDP_LEN + 3) & 15;
	key = be16(ld16(u, UDP_LEN)) * flows + flow;
	struct slot *t = bpf_map_lookup_elem(&slots, &key);
	u64 number = t ? READ_ONCE(t->number) : 0;
	u64 due = t ? t->due_ns : 0;
	if (!number || __sync_val_compare_and_swap(&t->number, number, 0) != number) {
		s->unasked++;
		return XDP_DROP;
	}
	s->codes[code]++;
	key = (number - 1) % nrequests;
	if (same(ctx, udp + UDP_LEN, key, udp_len - UDP_LEN)) {
		s->right++;
		if (flags & 2)
			s->truncated++;
		latency(s, now - due);
		return XDP_DROP;
	}
	struct expected *e = bpf_map_lookup_elem(&expected, &key);
	if (!e)
		return XDP_ABORTED;
	if (!same_question(ctx, udp + UDP_LEN, key))
		s->wrong_question++;
	else if (code != (e->words[0] >> 24 & 15))
		s->wrong_code++;
	else
		s->wrong_answer++;
	return XDP_DROP;
}

char _license[] SEC("license") = "Dual BSD/GPL";
