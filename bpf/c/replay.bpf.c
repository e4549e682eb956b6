// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sends frames that user space has prepared: the next one of the list when that is due (pace.h).
// Pages come back as the receiver left them, so the whole frame is written every time.

#include "pace.h"
#include "packet.h"

#define FRAME_MAX 3408 /* what fits a live frame's page */

static long (*bpf_xdp_store_bytes)(struct xdp_md *ctx, u32 offset, const void *from, u32 len) = (void *)190;

/* One frame of the list. */
struct replay_frame {
	u64 due_ns; /* after the start of its loop; used with scheduled only */
	u32 chunk;  /* where its bytes are: element of bytes, and offset into it */
	u32 off;
	u32 len;
	u32 pad;
};

struct replay_time {
	u64 due_ns;  /* intended */
	u64 sent_ns; /* when the program handed it over */
};

struct replay_state {
	struct pace pace;
	u64 bytes;           /* of the frames sent */
	u64 next;            /* place in the list */
	u64 loop;            /* how often the list has ended */
	u64 loop_ns;         /* start of the present loop, shifts included */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct replay_state);
} state SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* frames of the list */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct replay_frame);
} frames SEC(".maps");

/* The frames' bytes; user space sets both sizes, and leaves FRAME_MAX bytes after off_max in every element. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, 4096);
} bytes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct replay_time);
} times SEC(".maps");

volatile const u32 count = 1;         /* frames of the list */
volatile const u32 off_max = 0;       /* highest offset of a frame in an element of bytes */
volatile const u32 loop_at = 0;       /* where in the frame the loop's number is written; 0 = nowhere */
volatile const u32 recorded = 0;      /* elements of times; 0 = none are written */
volatile const u32 scheduled = 0;     /* frames have times of their own */
volatile const u64 period_ns = 0;     /* from one loop's start to the next; with scheduled */

/* When the next frame is due; now if there is no schedule. */
static __always_inline u64 due_of(struct replay_state *s, struct replay_frame *f, u64 now)
{
	if (scheduled)
		return s->loop_ns + f->due_ns;
	if (interval_ns || interval_frac)
		return s->pace.due_ns;
	return now;
}

/* Moves on to the next frame of the list and its time. */
static __always_inline void next_frame(struct replay_state *s)
{
	if (++s->next >= count) {
		s->next = 0;
		s->loop++;
		s->loop_ns += period_ns;
	}
	advance(&s->pace);
}

static __always_inline void record(struct replay_state *s, u64 due, u64 now)
{
	u32 key = s->pace.sent;
	if (!recorded || s->pace.sent >= recorded)
		return;
	struct replay_time *t = bpf_map_lookup_elem(&times, &key);
	if (!t)
		return;
	t->due_ns = due;
	t->sent_ns = now;
}

SEC("xdp") int replay(struct xdp_md *ctx)
{
	u32 key = 0;
	struct replay_state *s = bpf_map_lookup_elem(&state, &key);
	if (!s)
		return XDP_ABORTED;
	struct pace *p = &s->pace;
	u64 now = bpf_ktime_get_ns();
	if (!running(p, now))
		return XDP_DROP;
	if (!p->start_ns) {
		p->start_ns = now;
		p->due_ns = now;
		s->loop_ns = now;
	}

	key = s->next;
	struct replay_frame *f = bpf_map_lookup_elem(&frames, &key);
	if (!f)
		goto failed;
	u64 due = due_of(s, f, now);
	now = wait_for(due, now);
	if (due > now || !conforms(p, now))
		return XDP_DROP;
	u64 by = note_late(p, now, due);
	due += by;
	s->loop_ns += by;

	u32 len = f->len, off = f->off;
	if (len < ETH_LEN || len > FRAME_MAX || off > off_max)
		goto failed;
	u32 have = ctx->data_end - ctx->data;
	if (have != len && bpf_xdp_adjust_tail(ctx, (int)len - (int)have))
		goto failed;
	key = f->chunk;
	void *b = bpf_map_lookup_elem(&bytes, &key);
	if (!b || bpf_xdp_store_bytes(ctx, 0, b + off, len))
		goto failed;

	if (loop_at) {
		void *d = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
		if (d + loop_at + 2 > end)
			goto failed;
		st8(d, loop_at, s->loop >> 8);
		st8(d, loop_at + 1, s->loop);
	}

	record(s, due, now);
	next_frame(s);
	s->bytes += len;
	return send(p, now, limit);
failed:
	p->failed++;
	p->done = 1; /* a list with a hole in it is another list */
	return XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
