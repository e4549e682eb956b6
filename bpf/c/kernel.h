/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The few kernel definitions the programs use, so that building them needs clang and nothing else: no kernel headers,
 * no libbpf. Numbers and layouts are ABI (include/uapi/linux/bpf.h). */
#ifndef TWOPATH_KERNEL_H
#define TWOPATH_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed int s32;
typedef signed long long s64;

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name

#define READ_ONCE(x) (*(volatile typeof(x) *)&(x))

/* Little-endian hosts only (bpfel): network order is the other way round. */
#define be16(x) __builtin_bswap16(x)
#define be32(x) __builtin_bswap32(x)
#define be64(x) __builtin_bswap64(x)

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_XSKMAP = 17 };
enum { BPF_F_MMAPABLE = 1 << 10 };
enum xdp_action { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*bpf_redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*bpf_redirect_map)(void *map, u64 key, u64 flags) = (void *)51;
static long (*bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static u64 (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static long (*bpf_probe_read_kernel_str)(void *dst, u32 size, const void *from) = (void *)115;

#endif
