// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Accounts each CPU's time to whoever had it, at every switch of task, softirq or interrupt. Nothing is sampled.
// Time in a softirq or interrupt is taken out of the task it interrupted.

#include "kernel.h"

#define CLASSES 16
#define CPUS 1024

enum cpu_class {
	CLASS_IDLE,
	CLASS_OTHER,  /* every task nobody gave a class */
	CLASS_FIRST,  /* first class free for the caller; the last one is CLASSES - 1 */
	CLASS_COUNT = CLASSES,
};

/* Softirq vectors by what this project asks about (include/linux/interrupt.h). */
enum cpu_vector { VECTOR_NET_RX, VECTOR_NET_TX, VECTOR_TIMER, VECTOR_OTHER, VECTORS };

struct cpu_account {
	u64 seq;     /* odd while being written */
	u64 last_ns; /* start of the running interval, CLOCK_MONOTONIC */
	u64 task;    /* class of the current task */
	u64 vector;  /* 1 + enum cpu_vector of the running softirq, 0 = none */
	u64 irq;     /* in a device interrupt */
	u64 class_ns[CLASSES];
	u64 softirq_ns[VECTORS];
	u64 irq_ns;
	u64 voluntary[CLASSES];   /* switches away by sleeping */
	u64 involuntary[CLASSES]; /* switches away while still runnable */
	u64 softirqs[VECTORS];
	u64 irqs;
	u64 primed;  /* task is known; also makes the size 512, whole cache lines */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CPUS); /* set by the loader */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, u32);
	__type(value, struct cpu_account);
} accounts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, enum cpu_class);
} tgids SEC(".maps");

/* Looked at first: kernel threads, or single threads of a process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, enum cpu_class);
} pids SEC(".maps");

volatile const enum cpu_vector unused_vector = VECTORS;

struct task_struct {
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

static __always_inline struct cpu_account *account(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&accounts, &cpu);
}

static __always_inline u32 class_of(u32 pid, u32 tgid)
{
	if (!pid)
		return CLASS_IDLE;
	u32 *c = bpf_map_lookup_elem(&pids, &pid);
	if (!c)
		c = bpf_map_lookup_elem(&tgids, &tgid);
	return c ? *c : CLASS_OTHER;
}

/* Readers (user space, over mmap) retry when seq is odd or has changed; the atomics order it around the writes. A device
 * interrupt in the middle of another program finds it odd and leaves it to that one. */
static __always_inline int begin(struct cpu_account *a)
{
	if (READ_ONCE(a->seq) & 1)
		return 0;
	__sync_fetch_and_add(&a->seq, 1);
	return 1;
}

static __always_inline void end(struct cpu_account *a, int mine)
{
	if (mine)
		__sync_fetch_and_add(&a->seq, 1);
}

/* Books the time since the last event. */
static __always_inline void charge(struct cpu_account *a)
{
	u64 now = bpf_ktime_get_ns(), last = a->last_ns;
	/* An interrupt in the middle of this function has booked up to a later time: then there is nothing left to book. */
	if (now <= last)
		return;
	a->last_ns = now;
	if (!a->primed)
		return;
	u64 ns = now - last;
	if (a->irq)
		a->irq_ns += ns;
	else if (a->vector)
		a->softirq_ns[(a->vector - 1) & (VECTORS - 1)] += ns;
	else
		a->class_ns[a->task & (CLASSES - 1)] += ns;
}

SEC("tp_btf/sched_switch") int sched_switch(u64 *ctx)
{
	u64 preempt = ctx[0];
	struct task_struct *next = (void *)ctx[2];
	u64 state = ctx[3]; /* the fourth argument, since 5.18 */
	struct cpu_account *a = account();
	if (!a)
		return 0;
	u32 pid = next->pid, tgid = next->tgid;
	u32 class = class_of(pid, tgid);
	int mine = begin(a);
	charge(a);
	if ((u8)preempt || !(u32)state)
		a->involuntary[a->task & (CLASSES - 1)]++;
	else
		a->voluntary[a->task & (CLASSES - 1)]++;
	a->task = class;
	end(a, mine);
	return 0;
}

SEC("tp_btf/softirq_entry") int softirq_entry(u64 *ctx)
{
	u32 nr = ctx[0];
	struct cpu_account *a = account();
	if (!a)
		return 0;
	u32 v = nr == 3 ? VECTOR_NET_RX : nr == 2 ? VECTOR_NET_TX : nr == 1 ? VECTOR_TIMER : VECTOR_OTHER;
	int mine = begin(a);
	charge(a);
	a->vector = v + 1;
	a->softirqs[v]++;
	end(a, mine);
	return 0;
}

SEC("tp_btf/softirq_exit") int softirq_exit(u64 *ctx)
{
	struct cpu_account *a = account();
	if (!a)
		return 0;
	int mine = begin(a);
	charge(a);
	a->vector = 0;
	end(a, mine);
	return 0;
}

SEC("tp_btf/irq_handler_entry") int irq_handler_entry(u64 *ctx)
{
	struct cpu_account *a = account();
	if (!a)
		return 0;
	int mine = begin(a);
	charge(a);
	a->irq = 1;
	a->irqs++;
	end(a, mine);
	return 0;
}

SEC("tp_btf/irq_handler_exit") int irq_handler_exit(u64 *ctx)
{
	struct cpu_account *a = account();
	if (!a)
		return 0;
	int mine = begin(a);
	charge(a);
	a->irq = 0;
	end(a, mine);
	return 0;
}

/* Run once on each CPU after all else is attached: from here on the current task is known, also on a CPU that has nothing
 * to switch to. */
SEC("raw_tp") int prime(void *ctx)
{
	struct cpu_account *a = account();
	if (!a)
		return 0;
	u64 id = bpf_get_current_pid_tgid();
	int mine = begin(a);
	charge(a);
	a->task = class_of((u32)id, id >> 32);
	a->primed = 1;
	end(a, mine);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
