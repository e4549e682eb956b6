// SPDX-License-Identifier: Apache-2.0

package knob

import "fmt"

// Where is what of a trial decides whether the kernel looks at a knob at all.
type Where struct {
	Driver   string // of the SUT's port
	Threaded bool   // its NAPI runs in threads
	RPS      bool   // received packets are handed on to other CPUs' backlogs
	Sends    bool   // the SUT sends, too: qdiscs look at dev_weight, and more softirqs run than its own
}

// Idle says why a knob can make no difference to the trials, "" when it can. An A/B of such a knob compares an arm with
// itself, and a reader must know. Looked up in Linux 6.18: process_backlog, net_rx_action, napi_threaded_poll_loop and
// netif_napi_add of net/core/dev.c, sock_setsockopt of net/core/sock.c, drivers/net/veth.c.
func Idle(name string, w Where) string {
	switch name {
	case "dev_weight", "netdev_max_backlog":
		if w.RPS || w.Sends && name == "dev_weight" {
			return ""
		}
		return fmt.Sprintf("only the backlog of a CPU looks at %s, and %s has NAPI, which takes 64 packets a visit whatever it is set to: "+
			"this compares an arm with itself (+rps_cpus=LIST brings the backlog in)", name, w.Driver)
	case "netdev_budget", "netdev_budget_usecs":
		if !w.Threaded || w.RPS || w.Sends {
			return ""
		}
		return fmt.Sprintf("only the receive softirq looks at %s, and NAPI runs in threads here, which have no budget: "+
			"this compares an arm with itself (--placement sender has it in softirq)", name)
	case "rmem_max", "wmem_max":
		return fmt.Sprintf("this program passes %s over as root (SO_RCVBUFFORCE, SO_SNDBUFFORCE): this compares an arm with itself (+rcvbuf=N is the buffer)", name)
	}
	return ""
}
