// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
// Passes everything: attached where an XDP program is needed for its side effect (NAPI on veth), not for what it does.

#include "kernel.h"

SEC("xdp") int pass(struct xdp_md *ctx)
{
	return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
