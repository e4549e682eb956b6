/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Tells answers to the run's requests from all other frames, on the device that the requests leave from. */
#ifndef TWOPATH_REPLY_H
#define TWOPATH_REPLY_H

#include "flow.h"

/* Returns OURS if the frame goes back the way the run's requests came, or the reason why it does not. The match is that of
 * the requests. */
static __always_inline int classify_reply(void *d, void *end, u32 *udp)
{
	int why = foreign_l2(d, end);
	if (why != OURS)
		return why;
	u32 off;
	if (match.family == 4) {
		off = ETH_LEN + IP4_LEN;
		if (d + ETH_LEN + IP4_LEN > end)
			return REASON_TOO_SHORT;
		u8 ver = ld8(d, 14);
		if (ver >> 4 != 4 || ld32(d, 26) != match.dst[0] || ld32(d, 30) != match.src[0])
			return REASON_FOREIGN_IP;
		if (ver != 0x45)
			return REASON_IP_OPTIONS;
		if (ld16(d, 20) & be16(0x3fff)) /* more fragments, or an offset */
			return REASON_FRAGMENT;
		if (ld8(d, 23) != PROTO_UDP)
			return REASON_FOREIGN_L4;
	} else {
		off = ETH_LEN + IP6_LEN;
		if (d + ETH_LEN + IP6_LEN > end)
			return REASON_TOO_SHORT;
		if (ld8(d, 14) >> 4 != 6)
			return REASON_FOREIGN_IP;
		for (int i = 0; i < 4; i++)
			if (ld32(d, 22 + 4 * i) != match.dst[i] || ld32(d, 38 + 4 * i) != match.src[i])
				return REASON_FOREIGN_IP;
		if (ld8(d, 20) != PROTO_UDP)
			return REASON_FOREIGN_L4;
	}
	void *u = d + off;
	if (u + UDP_LEN > end)
		return REASON_TOO_SHORT;
	u32 port = be16(ld16(u, 2));
	if (ld16(u, 0) != be16(match.dst_port) || port < match.src_port_first || port - match.src_port_first >= match.src_ports)
		return REASON_FOREIGN_PORT;
	*udp = off;
	return foreign_run(u, end);
}

#endif
