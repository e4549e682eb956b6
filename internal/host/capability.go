// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// capability is one that measuring needs, and what for.
type capability struct {
	name     string
	bit      int
	why      string
	optional bool
	instead  int // another capability that implies it (capabilities(7)), or -1
}

func capabilities() []capability {
	return []capability{
		{"NET_ADMIN", unix.CAP_NET_ADMIN, "makes and configures devices, attaches XDP, sizes socket buffers beyond rmem_max", false, -1},
		{"NET_RAW", unix.CAP_NET_RAW, "opens AF_XDP and AF_PACKET sockets", false, -1},
		{"SYS_ADMIN", unix.CAP_SYS_ADMIN, "makes and enters network namespaces, and mounts the sysfs that switches threaded NAPI", false, -1},
		{"BPF", unix.CAP_BPF, "loads XDP programs and maps", false, unix.CAP_SYS_ADMIN},
		{"PERFMON", unix.CAP_PERFMON, "attaches the tracing programs that account CPU time per packet", false, unix.CAP_SYS_ADMIN},
		{"IPC_LOCK", unix.CAP_IPC_LOCK, "locks the memory of AF_XDP sockets beyond the memlock limit", true, -1},
		{"SYS_NICE", unix.CAP_SYS_NICE, "pins NAPI threads and gives them SCHED_FIFO", false, -1},
		{"SYS_RESOURCE", unix.CAP_SYS_RESOURCE, "raises the memlock limit; only needed where CAP_IPC_LOCK is missing", true, unix.CAP_IPC_LOCK},
	}
}

// effective reads the calling thread's effective capabilities.
func effective() (uint64, error) {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &data[0]); err != nil {
		return 0, fmt.Errorf("read capabilities: %w", err)
	}
	return uint64(data[1].Effective)<<32 | uint64(data[0].Effective), nil
}

// capabilityChecks tells for each capability whether this process has it.
func capabilityChecks(have uint64, root bool) []Check {
	var out []Check
	for _, c := range capabilities() {
		check := Check{ID: "cap." + strings.ToLower(c.name), Status: Pass, What: "CAP_" + c.name + " is there", Why: c.why}
		switch {
		case have>>c.bit&1 == 1:
		case c.instead >= 0 && have>>c.instead&1 == 1:
			check.What = fmt.Sprintf("CAP_%s is missing, and another that this process has does for it", c.name)
		default:
			check.Status, check.What, check.Cure = Fail, "CAP_"+c.name+" is missing", "run as root (sudo)"
			if root {
				check.Cure = fmt.Sprintf("something took it from root: a container needs --cap-add %s, a systemd unit AmbientCapabilities=CAP_%s", c.name, c.name)
			}
			if c.optional {
				check.Status = Warn
			}
		}
		out = append(out, check)
	}
	return out
}
