// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"

	"github.com/prometheus/procfs"
)

// DoctorOptions says what to look at.
type DoctorOptions struct {
	IF     string  // a device of this network namespace to look at; "" means the veth rig only
	Probes []Probe // features of other packages to try, in the order they are to be shown
}

// Doctor looks at the machine, this process's privileges and the device, tries features, and says what stands in the
// way of a measurement. It takes about half a second. It never fails: what it can not see is a check with status Skip.
func Doctor(o DoctorOptions) []Check {
	root := os.Geteuid() == 0
	h := Facts()
	cpus, err := AllowedCPUs()
	if err != nil {
		return []Check{{ID: "cpu.count", Status: Skip, What: err.Error(), Why: "everything else needs to know the CPUs"}}
	}
	out := machineChecks(h, cpus)
	out = append(out, stallCheck(cpus))
	caps, err := effective()
	if err != nil {
		out = append(out, Check{ID: "cap", Status: Skip, What: err.Error(), Why: "measuring needs privileges"})
	} else {
		out = append(out, capabilityChecks(caps, root)...)
	}
	out = append(out, memlockCheck(caps), rmemCheck(caps))
	for _, p := range append(socketProbes(), o.Probes...) {
		out = append(out, p.check(root))
	}
	out = append(out, attachedAnywhere(), tunedCheck(""))
	if o.IF != "" {
		out = append(out, interfaceChecks(o.IF)...)
		out = append(out, balancerCheck())
	}
	return append(out, toolChecks()...)
}

// toolChecks looks for programs that help to look around; none is needed.
func toolChecks() []Check {
	var out []Check
	for _, t := range []struct{ name, why, pkg string }{
		{"ip", "looks into the rig's namespaces (twopath rig up)", "iproute2"},
		{"ethtool", "shows and sets what drivers have", "ethtool"},
		{"bpftool", "shows whose XDP programs are attached", "bpftool (linux-tools)"},
		{"ssh", "starts the agent of a second host", "openssh-client"},
	} {
		c := Check{ID: "tool." + t.name, Status: Pass, Why: t.why + "; nothing is measured with it"}
		if c.What = installed(t.name); c.What == "" {
			c.Status, c.What, c.Cure = Warn, t.name+" is not installed", "install "+t.pkg+" if you want to"
		}
		out = append(out, c)
	}
	return out
}

// installed finds a program where distributions put them, whatever the caller's PATH is (sudo's lacks some, a user's
// lacks the sbin ones).
func installed(name string) string {
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		path := filepath.Join(dir, name)
		if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Mode().Perm()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// balancerCheck looks for irqbalance, which moves interrupts while trials run.
func balancerCheck() Check {
	c := Check{ID: "irq.balance", Status: Pass, What: "irqbalance does not run", Why: "it moves a NIC's interrupts to other CPUs in the middle of a trial"}
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		c.Status, c.What = Skip, "processes are not to be seen"
		return c
	}
	procs, err := fs.AllProcs()
	if err != nil {
		c.Status, c.What = Skip, "processes are not to be seen"
		return c
	}
	for _, p := range procs {
		if comm, err := p.Comm(); err == nil && comm == "irqbalance" {
			c.Status, c.What, c.Cure = Warn, "irqbalance runs", "for the time of the measurement: systemctl stop irqbalance"
		}
	}
	return c
}
