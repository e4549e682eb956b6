// SPDX-License-Identifier: Apache-2.0

package knob

import "github.com/safchain/ethtool"

// table says where each knob is found. The order of names is that of Names.
func table() map[string]func(At) ([]place, error) {
	t := map[string]func(At) ([]place, error){
		"governor":       governors,
		"numa_balancing": sysctl("kernel/numa_balancing"),
		"queues":         queues,
		"promisc":        promisc,
		"rps_cpus":       queueMask("rx-", "rps_cpus"),
		"xps_cpus":       queueMask("tx-", "xps_cpus"),
		"irq_cpus":       interrupts,
		"threaded":       threaded,
	}
	for _, n := range []string{"dev_weight", "netdev_budget", "netdev_budget_usecs", "netdev_max_backlog", "busy_poll", "busy_read",
		"rmem_max", "rmem_default", "wmem_max", "wmem_default"} {
		t[n] = sysctl("net/core/" + n)
	}
	for _, n := range []string{"napi_defer_hard_irqs", "gro_flush_timeout"} {
		t[n] = portFile(n)
	}
	t["rx_ring"] = ring(func(r *ethtool.Ring) (*uint32, uint32) { return &r.RxPending, r.RxMaxPending })
	t["tx_ring"] = ring(func(r *ethtool.Ring) (*uint32, uint32) { return &r.TxPending, r.TxMaxPending })
	for n, field := range map[string]func(*ethtool.Coalesce) *uint32{
		"rx_usecs":  func(c *ethtool.Coalesce) *uint32 { return &c.RxCoalesceUsecs },
		"rx_frames": func(c *ethtool.Coalesce) *uint32 { return &c.RxMaxCoalescedFrames },
		"tx_usecs":  func(c *ethtool.Coalesce) *uint32 { return &c.TxCoalesceUsecs },
		"tx_frames": func(c *ethtool.Coalesce) *uint32 { return &c.TxMaxCoalescedFrames },
	} {
		t[n] = coalesce(field, number{})
	}
	t["adaptive_rx"] = coalesce(func(c *ethtool.Coalesce) *uint32 { return &c.UseAdaptiveRxCoalesce }, onOff{})
	t["adaptive_tx"] = coalesce(func(c *ethtool.Coalesce) *uint32 { return &c.UseAdaptiveTxCoalesce }, onOff{})
	t["pause_autoneg"] = pause(func(p *ethtool.Pause) *uint32 { return &p.Autoneg })
	t["pause_rx"] = pause(func(p *ethtool.Pause) *uint32 { return &p.RxPause })
	t["pause_tx"] = pause(func(p *ethtool.Pause) *uint32 { return &p.TxPause })
	for n, features := range map[string][]string{
		"offload_gro":    {"rx-gro"},
		"offload_gro_hw": {"rx-gro-hw"},
		"offload_lro":    {"rx-lro"},
		"offload_gso":    {"tx-generic-segmentation"},
		"offload_tso":    {"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation"},
		"offload_rxvlan": {"rx-vlan-hw-parse"},
	} {
		t[n] = offload(features)
	}
	return t
}
