// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Sends frames that user space has prepared, run by BPF_PROG_RUN with BPF_F_TEST_XDP_LIVE_FRAMES: called once per frame in an
// endless loop, it sends the next frame of the list when that is due and drops the page (gives it back) when not.
// Pages come back as the receiver left them, so the whole frame is written every time.

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
	u64 stop;            /* written by user space: send no more */
	u64 done;            /* count reached */
	u64 sent;            /* frames redirected */
	u64 bytes;           /* of these frames */
	u64 calls;           /* program runs, most of them waiting for the next frame's time */
	u64 start_ns;        /* CLOCK_MONOTONIC: what the schedule counts from */
	u64 end_ns;          /* last frame redirected */
	u64 late_total_ns;   /* sum over frames of (sent - intended) */
	u64 late_max_ns;
	u64 late_slots;      /* frames sent more than 1 ms after their intended time */
	u64 shifts;          /* times the schedule moved on because it could not be caught up */
	u64 shifted_ns;      /* by how much, in all */
	u64 held;            /* calls that were due but held back by the catch-up limit */
	u64 gap_max_ns;      /* longest time between two calls */
	u64 failed;          /* frames that could not be shaped; must be 0 */
	u64 last_ns;         /* the previous call */
	u64 next;            /* place in the list */
	u64 loop;            /* how often the list has ended */
	u64 loop_ns;         /* start of the present loop, shifts included */
	u64 due_ns, due_frac;/* next intended time at a rate, fraction in 2^-32 ns */
	u64 tat;             /* theoretical arrival time of the catch-up limit, 2^-12 ns after start_ns */
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

volatile const u32 ifindex = 0;
volatile const u32 count = 1;         /* frames of the list */
volatile const u32 off_max = 0;       /* highest offset of a frame in an element of bytes */
volatile const u32 loop_at = 0;       /* where in the frame the loop's number is written; 0 = nowhere */
volatile const u32 recorded = 0;      /* elements of times; 0 = none are written */
volatile const u32 scheduled = 0;     /* frames have times of their own */
volatile const u64 period_ns = 0;     /* from one loop's start to the next; with scheduled */
volatile const u64 limit = 0;         /* frames in all; 0 = until stopped */
volatile const u64 interval_ns = 0;   /* between frames at a rate; both 0 = as fast as it goes */
volatile const u64 interval_frac = 0; /* 2^-32 ns */
volatile const u64 catchup = 0;       /* shortest mean interval, 2^-12 ns; 0 = no limit */
volatile const u64 burst = 96;        /* frames at once before catchup limits */
volatile const u64 lag_ns = 0;        /* how late the schedule may run before it is shifted */
volatile const u32 patience = 0;      /* how often one call looks at the clock again while nothing is due */

#define LATE_NS 1000000
#define PATIENCE_MAX 64

/* When the next frame is due; now if there is no schedule. */
static __always_inline u64 due_of(struct replay_state *s, struct replay_frame *f, u64 now)
{
	if (scheduled)
		return s->loop_ns + f->due_ns;
	if (interval_ns || interval_frac)
		return s->due_ns;
	return now;
}

/* Says whether a frame that is due may go now, and keeps the books of lateness. */
static __always_inline int conforms(struct replay_state *s, u64 now, u64 *due)
{
	if (catchup) {
		/* GCRA (ITU-T I.371): conforming when the theoretical arrival time is at most the burst ahead. */
		u64 at = (now - s->start_ns) << 12;
		u64 tat = s->tat;
		if (tat > at + burst * catchup) {
			s->held++;
			return 0;
		}
		s->tat = (tat > at ? tat : at) + catchup;
	}
	u64 late = now - *due;
	if (lag_ns && late > lag_ns) {
		u64 by = late - lag_ns;
		s->due_ns += by;
		s->loop_ns += by;
		*due += by;
		s->shifts++;
		s->shifted_ns += by;
		late = lag_ns;
	}
	s->late_total_ns += late;
	if (late > s->late_max_ns)
		s->late_max_ns = late;
	if (late > LATE_NS)
		s->late_slots++;
	return 1;
}

/* Moves on to the next frame of the list and its time. */
static __always_inline void advance(struct replay_state *s)
{
	if (++s->next >= count) {
		s->next = 0;
		s->loop++;
		s->loop_ns += period_ns;
	}
	u64 frac = s->due_frac + interval_frac;
	s->due_ns += interval_ns + (frac >> 32);
	s->due_frac = frac & 0xffffffff;
}

static __always_inline void record(struct replay_state *s, u64 due, u64 now)
{
	u32 key = s->sent;
	if (!recorded || s->sent >= recorded)
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
	u64 now = bpf_ktime_get_ns();
	s->calls++;
	if (s->done || READ_ONCE(s->stop))
		return XDP_DROP;
	if (s->last_ns && now - s->last_ns > s->gap_max_ns)
		s->gap_max_ns = now - s->last_ns;
	s->last_ns = now;
	if (!s->start_ns) {
		s->start_ns = now;
		s->loop_ns = now;
		s->due_ns = now;
	}

	key = s->next;
	struct replay_frame *f = bpf_map_lookup_elem(&frames, &key);
	if (!f)
		goto failed;
	u64 due = due_of(s, f, now);
	/* The kernel hands frames to the device after a fixed number of calls: calls that wait fill it with frames. */
	for (u32 i = 0; i < patience && i < PATIENCE_MAX && due > now; i++)
		now = bpf_ktime_get_ns();
	if (due > now || !conforms(s, now, &due))
		return XDP_DROP;

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
	advance(s);
	s->sent++;
	s->bytes += len;
	s->end_ns = now;
	if (limit && s->sent >= limit)
		s->done = 1;
	return bpf_redirect(ifindex, 0);
failed:
	s->failed++;
	s->done = 1; /* a list with a hole in it is another list */
	return XDP_ABORTED;
}

char _license[] SEC("license") = "Dual BSD/GPL";
