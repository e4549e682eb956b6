// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"twopath/bpf"
	"twopath/compare"
	"twopath/internal/host"
	"twopath/internal/knob"
	"twopath/internal/report"
	"twopath/internal/rig"
	"twopath/xsk"
)

func (a *app) doctorCommand() *cobra.Command {
	var asJSON, wide bool
	c := &cobra.Command{
		Use:   "doctor [IF]",
		Short: "Can this machine, this NIC, measure? What to fix",
		Long: `doctor looks at the machine, tries the kernel features that twopath uses, and says of each whether it is there, why it matters and
what to do. It also puts back what runs that were killed have left. It changes nothing else. As root it can try everything.

Exit codes: 0 this machine can measure, 3 it cannot.`,
		Example: `  sudo twopath doctor
  sudo twopath doctor enp3s0
  twopath doctor --json`,
		Args: exactly(0, 1, "at most one interface"),
	}
	c.Flags().BoolVar(&asJSON, "json", false, "JSON on stdout")
	c.Flags().BoolVar(&wide, "wide", false, "why each check matters, also of those that passed")
	c.RunE = func(_ *cobra.Command, args []string) error {
		o := host.DoctorOptions{Probes: probes()}
		if len(args) == 1 {
			o.IF = args[0]
		}
		checks := append(leftoverChecks(), host.Doctor(o)...)
		if o.IF == "" {
			checks = append(checks, vethChecks()...)
		}
		out := make([]report.Check, len(checks))
		for i, k := range checks {
			out[i] = report.Check{ID: k.ID, Status: report.CheckStatus(k.Status), What: k.What, Why: k.Why, Cure: k.Cure}
		}
		_, width := terminal(a.stdout)
		var err error
		if asJSON {
			err = report.DoctorJSON(a.stdout, out)
		} else {
			err = report.DoctorText(a.stdout, out, report.TextOptions{Color: colours(a.stdout), Width: width, Wide: wide})
		}
		if err != nil {
			return err
		}
		if !report.SummarizeChecks(out).Able() {
			return told(exitMachine)
		}
		return nil
	}
	return c
}

// probes are the features of BPF, found out by trying.
func probes() []host.Probe {
	return []host.Probe{
		{ID: "bpf.xdp", What: "XDP programs", Why: "the xdp engine, and the limit", Cure: "a kernel with CONFIG_BPF_SYSCALL and CONFIG_BPF_JIT", Try: bpf.ProbeXDP},
		{ID: "bpf.xskmap", What: "XSKMAP", Why: "redirects frames to AF_XDP sockets", Cure: "a kernel with CONFIG_XDP_SOCKETS", Try: bpf.ProbeXSKMap},
		{ID: "bpf.link", What: "XDP by bpf_link", Why: "programs go with the process that attached them", Cure: "Linux 5.9 or newer", Try: bpf.ProbeXDPLink},
		{ID: "bpf.live_frames", What: "XDP live frames", Why: "the generator", Cure: "Linux 5.18 or newer", Try: bpf.ProbeLiveFrames},
		{ID: "bpf.btf", What: "BTF and tracing programs", Why: "CPU time per packet, softirqs in idle included; without, the scheduler's own figures are used",
			Cure: "a kernel with CONFIG_DEBUG_INFO_BTF", Optional: true, Try: bpf.ProbeBTF},
		{ID: "bpf.frags", What: "multi-buffer XDP", Why: "frames over a page", Cure: "Linux 5.18 or newer", Optional: true, Try: bpf.ProbeFrags},
	}
}

// leftoverChecks puts back what dead runs have left and names what nobody accounts for.
func leftoverChecks() []host.Check {
	why := "a run that is killed in the middle leaves a moved NIC or a namespace until the next run"
	var out []host.Check
	undone, err := rig.Recover("")
	for _, l := range undone {
		out = append(out, host.Check{ID: "rig.leftover", Status: host.Warn, Why: why,
			What: fmt.Sprintf("put back what process %d has left: %s", l.PID, strings.Join(append(l.Devices, l.Namespaces...), ", "))})
	}
	if err != nil {
		out = append(out, host.Check{ID: "rig.leftover", Status: host.Warn, Why: why, What: err.Error(), Cure: "run the doctor as root (sudo)"})
	}
	knobs, pid, err := knob.Recover("")
	if len(knobs) > 0 {
		out = append(out, host.Check{ID: "knob.leftover", Status: host.Warn, Why: why,
			What: fmt.Sprintf("put back what process %d has left set: %s", pid, undoneText(knobs))})
	}
	if err != nil {
		out = append(out, host.Check{ID: "knob.leftover", Status: host.Warn, Why: why, What: err.Error(), Cure: "run the doctor as root (sudo)"})
	}
	strays, err := rig.Strays("")
	for _, s := range strays {
		out = append(out, host.Check{ID: "rig.stray", Status: host.Warn, Why: why, What: s.What, Cure: s.Cure})
	}
	if err == nil && len(out) == 0 {
		out = append(out, host.Check{ID: "rig.leftover", Status: host.Pass, Why: why, What: "no run has left anything behind"})
	}
	return out
}

// vethChecks make the rig and try AF_XDP on it.
func vethChecks() []host.Check {
	c := host.Check{ID: "rig.veth", Status: host.Pass, Why: "measuring without hardware", What: "the veth rig can be made, its NAPI threaded and placed"}
	r, err := rig.New(rig.Options{})
	if err == nil {
		defer r.Close()
		err = placeable(r)
	}
	if err != nil {
		c.Status, c.What = host.Fail, err.Error()
		if os.Geteuid() != 0 {
			c.Status, c.Cure = host.Skip, "run the doctor as root (sudo)"
		}
		return []host.Check{c}
	}
	out := []host.Check{c}
	var found []xsk.Finding
	if err := r.SUT.Do(func() error { found = xsk.Probe(r.SUT.Name, 0); return nil }); err != nil {
		return append(out, host.Check{ID: "xsk", Status: host.Skip, What: err.Error(), Why: "the xdp engine"})
	}
	for _, f := range found {
		out = append(out, xskCheck(f))
	}
	return out
}

// placeable tries both policies of threaded NAPI.
func placeable(r *rig.Rig) error {
	cpus, err := host.AllowedCPUs()
	if err != nil {
		return err
	}
	for _, p := range []rig.Policy{rig.FIFO, rig.Other} {
		o := rig.NAPIOptions{Threaded: true, CPUs: cpus[:1], Policy: p}
		if err := errors.Join(r.SUT.SetNAPI(o), r.SUT.VerifyNAPI(o)); err != nil {
			return err
		}
	}
	return nil
}

func xskCheck(f xsk.Finding) host.Check {
	about := map[string][2]string{
		xsk.FeatureSocket:     {"AF_XDP sockets", "a kernel with CONFIG_XDP_SOCKETS, and root"},
		xsk.FeatureUMEM:       {"packet memory (8 MiB locked)", "raise the memlock limit: ulimit -l unlimited"},
		xsk.FeatureHugePages:  {"huge pages for packet memory", "reserve some: sysctl vm.nr_hugepages=64"},
		xsk.FeatureBind:       {"binding in copy mode", ""},
		xsk.FeatureNeedWakeup: {"need_wakeup", "Linux 5.4 or newer"},
		xsk.FeatureMulti:      {"multi-buffer sockets", "Linux 6.6 or newer"},
		xsk.FeatureTxBudget:   {"a larger TX budget", "Linux 6.18 or newer"},
		xsk.FeatureBusyPoll:   {"busy polling", "Linux 5.11 or newer"},
		xsk.FeatureZeroCopy:   {"zero-copy (never on veth)", "a NIC whose driver has it: twopath doctor IF"},
	}
	needed := f.Feature == xsk.FeatureSocket || f.Feature == xsk.FeatureUMEM || f.Feature == xsk.FeatureBind
	c := host.Check{ID: "xsk." + f.Feature, Status: host.Pass, What: about[f.Feature][0] + ": works (tried)", Why: "the xdp engine"}
	if f.Answer == xsk.Yes {
		return c
	}
	c.What = fmt.Sprintf("%s: %v", about[f.Feature][0], f.Why)
	c.Cure = about[f.Feature][1]
	switch {
	case f.Answer == xsk.Unknown:
		c.Status = host.Skip
	case needed:
		c.Status = host.Fail
	case f.Feature == xsk.FeatureZeroCopy && errors.Is(f.Why, unix.EOPNOTSUPP):
		c.Status = host.Skip // nothing is wrong: a veth has no memory of its own to share
	default:
		c.Status = host.Warn
	}
	return c
}

func hostFacts() compare.Host { return host.Facts() }
