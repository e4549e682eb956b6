/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The clockwork of programs that send by BPF_PROG_RUN with BPF_F_TEST_XDP_LIVE_FRAMES: called once per frame in an endless
 * loop, they send the next frame when it is due and drop the page (give it back) when not. */
#ifndef TWOPATH_PACE_H
#define TWOPATH_PACE_H

#include "kernel.h"

/* How far a stream is. First in the state of each program: user space reads and stops them all alike. */
struct pace {
	u64 stop;            /* written by user space: send no more */
	u64 done;            /* count reached */
	u64 sent;            /* frames redirected */
	u64 calls;           /* program runs, most of them waiting for the next slot */
	u64 start_ns;        /* CLOCK_MONOTONIC: what the schedule counts from, the first frame's intended time */
	u64 end_ns;          /* last frame redirected */
	u64 late_total_ns;   /* sum over frames of (sent - intended) */
	u64 late_max_ns;
	u64 late_slots;      /* frames sent more than 1 ms after their intended time */
	u64 shifts;          /* times the schedule moved on because it could not be caught up */
	u64 shifted_ns;      /* by how much, in all */
	u64 held;            /* calls that were due but held back by the catch-up limit */
	u64 gap_max_ns;      /* longest time between two calls: the sender itself stood still */
	u64 failed;          /* frames that could not be shaped; must be 0 */
	u64 last_ns;         /* the previous call */
	u64 due_ns, due_frac;/* next intended time, fraction in 2^-32 ns */
	u64 tat;             /* theoretical arrival time of the catch-up limit, 2^-12 ns after start_ns */
};

volatile const u32 ifindex = 0;
volatile const u64 limit = 0;         /* frames in all; 0 = until stopped */
volatile const u64 interval_ns = 0;   /* between frames; both 0 = as fast as it goes */
volatile const u64 interval_frac = 0; /* 2^-32 ns */
volatile const u64 catchup = 0;       /* shortest mean interval when late, 2^-12 ns; 0 = no limit */
volatile const u64 burst = 96;        /* frames at once before catchup limits */
volatile const u64 lag_ns = 0;        /* how late the schedule may run before it is shifted */
volatile const u32 patience = 0;      /* how often one call looks at the clock again while nothing is due */

#define LATE_NS 1000000
#define PATIENCE_MAX 64

/* Begins a call: notes the time since the last one, and says whether there is anything left to send. */
static __always_inline int running(struct pace *p, u64 now)
{
	p->calls++;
	if (p->done || READ_ONCE(p->stop))
		return 0;
	if (p->last_ns && now - p->last_ns > p->gap_max_ns)
		p->gap_max_ns = now - p->last_ns;
	p->last_ns = now;
	return 1;
}

/* Waits a little for the time due, and returns the time it is. The kernel hands frames to the device after a fixed number
 * of calls: calls that wait fill it with frames, and calls that return at once with looks at the clock. */
static __always_inline u64 wait_for(u64 due, u64 now)
{
	for (u32 i = 0; i < patience && i < PATIENCE_MAX && due > now; i++)
		now = bpf_ktime_get_ns();
	return now;
}

/* Says whether a frame that is due may go now, so soon after others. GCRA (ITU-T I.371): conforming when the theoretical
 * arrival time is at most the burst ahead. */
static __always_inline int conforms(struct pace *p, u64 now)
{
	if (!catchup)
		return 1;
	u64 at = (now - p->start_ns) << 12, tat = p->tat;
	if (tat > at + burst * catchup) {
		p->held++;
		return 0;
	}
	p->tat = (tat > at ? tat : at) + catchup;
	return 1;
}

/* Keeps the books of lateness of a frame that goes now. Returns by how much the schedule moves on. */
static __always_inline u64 note_late(struct pace *p, u64 now, u64 due)
{
	u64 late = now - due, by = 0;
	if (lag_ns && late > lag_ns) {
		by = late - lag_ns;
		p->due_ns += by;
		p->shifts++;
		p->shifted_ns += by;
		late = lag_ns;
	}
	p->late_total_ns += late;
	if (late > p->late_max_ns)
		p->late_max_ns = late;
	if (late > LATE_NS)
		p->late_slots++;
	return by;
}

/* Moves on to the time of the next frame. */
static __always_inline void advance(struct pace *p)
{
	u64 frac = p->due_frac + interval_frac;
	p->due_ns += interval_ns + (frac >> 32);
	p->due_frac = frac & 0xffffffff;
}

/* Says whether the next frame of a steady stream may go now, and its intended time in *due. */
static __always_inline int slot(struct pace *p, u64 now, u64 *due)
{
	if (!p->start_ns) {
		p->start_ns = now;
		p->due_ns = now;
	}
	*due = now;
	if (!interval_ns && !interval_frac)
		return 1;
	if (p->due_ns > now || !conforms(p, now))
		return 0;
	u64 intended = p->due_ns;
	*due = intended + note_late(p, now, intended);
	advance(p);
	return 1;
}

/* Sends the frame, the last one if there are as many as most (0 = no end). */
static __always_inline int send(struct pace *p, u64 now, u64 most)
{
	p->sent++;
	p->end_ns = now;
	if (most && p->sent >= most)
		p->done = 1;
	return bpf_redirect(ifindex, 0);
}

#endif
