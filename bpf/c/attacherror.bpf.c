// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Catches the sentence with which a driver refuses an XDP program: bpf_link has no way to hand it to the caller, but
// the kernel traces it (bpf_xdp_link_attach_failed, since 6.5).

#include "kernel.h"

#define TEXT 128

struct attach_refusal {
	char text[TEXT];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct attach_refusal);
} refusal SEC(".maps");

volatile const u32 tgid = 0;

SEC("tp_btf/bpf_xdp_link_attach_failed") int attach_failed(u64 *ctx)
{
	u32 key = 0;
	struct attach_refusal *r = bpf_map_lookup_elem(&refusal, &key);
	if (r && bpf_get_current_pid_tgid() >> 32 == tgid)
		bpf_probe_read_kernel_str(r->text, TEXT, (void *)ctx[0]);
	return 0;
}

char _license[] SEC("license") = "Dual BSD/GPL";
