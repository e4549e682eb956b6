// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"twopath/compare"
	"twopath/internal/host"
	"twopath/internal/knob"
	"twopath/internal/report"
	"twopath/internal/rig"
)

// tuneFlags are those of plan and apply.
type tuneFlags struct {
	profile string
	only    []string
	set     []string
	force   bool
	json    bool
}

func (a *app) tuneCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "tune",
		Short: "The host's knobs: a plan, shown first; set; and put back",
		Long: `tune plan shows what of this machine, and of a port, stands in the way of a steady measurement: what it is now, what it
should be, why, and what that risks; and what this driver or kernel lacks. It changes nothing. tune apply sets it, and tune undo
puts back what was, also after apply was killed in the middle: a journal (/run/twopath/tune.json) is on disk before the first
change. A knob that the driver refuses puts back all that had been set.

Every knob is an arm option too, for an A/B of the knob itself: compare udp-rx kernel:recvmmsg kernel:recvmmsg+netdev_budget=600.

Exit codes: 0 done, 2 usage, 3 it was refused, and everything is as it was.`,
		Example: `  twopath tune plan
  sudo twopath tune plan enp3s0 --profile latency
  sudo twopath tune apply enp3s0 --only rx_ring,pause_rx,pause_tx
  sudo twopath tune apply --set netdev_budget=600 --only netdev_budget
  sudo twopath tune undo`,
		Args: exactly(0, 0, "plan, apply, undo, status or list"),
		RunE: func(c *cobra.Command, _ []string) error { return a.tuneStatus() },
	}
	c.AddCommand(a.tunePlanCommand(), a.tuneApplyCommand(), a.tuneUndoCommand(),
		&cobra.Command{Use: "status", Short: "Tell what tune apply has set", Example: "  twopath tune status", Args: exactly(0, 0, "no arguments"),
			RunE: func(*cobra.Command, []string) error { return a.tuneStatus() }},
		&cobra.Command{Use: "list", Short: "List the knobs, with what they take", Example: "  twopath tune list", Args: exactly(0, 0, "no arguments"),
			RunE: func(*cobra.Command, []string) error { return a.tuneList() }})
	return c
}

func (f *tuneFlags) add(c *cobra.Command) {
	c.ValidArgsFunction = completePort
	c.Flags().StringVar(&f.profile, "profile", host.Throughput, "what for: throughput (room) or latency (no waiting)")
	c.Flags().StringSliceVar(&f.only, "only", nil, "these knobs only: `ID,ID..`")
	c.Flags().StringArrayVar(&f.set, "set", nil, "a value of your own, as in rx_ring=2048 (repeatable): `ID=VALUE`")
	c.Flags().BoolVar(&f.json, "json", false, "JSON on stdout")
	_ = c.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(host.Profiles(), cobra.ShellCompDirectiveNoFileComp))
	_ = c.RegisterFlagCompletionFunc("only", cobra.FixedCompletions(knob.Names(), cobra.ShellCompDirectiveNoFileComp))
	var equals []string
	for _, n := range knob.Names() {
		equals = append(equals, n+"=")
	}
	_ = c.RegisterFlagCompletionFunc("set", cobra.FixedCompletions(equals, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

func (a *app) tunePlanCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{Use: "plan [IF]", Short: "Show what would be set, and why; change nothing",
		Example: `  twopath tune plan
  sudo twopath tune plan enp3s0 --profile latency --json`, Args: exactly(0, 1, "at most one interface")}
	f.add(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		o, err := f.options(args)
		if err != nil {
			return err
		}
		plan, err := host.TunePlan(o)
		if err != nil {
			return err
		}
		if err := a.showPlan(f, o, plan); err != nil || f.json {
			return err
		}
		switch why := carries(o.Port); {
		case why != nil:
			fmt.Fprintf(a.stdout, "\napply would refuse: %v\n", why)
		case o.Changes(plan) == 0:
			fmt.Fprintln(a.stdout, "\nnothing to change")
		default:
			fmt.Fprintf(a.stdout, "\nset it: sudo %s; afterwards: sudo twopath tune undo\n", f.again(o))
		}
		return nil
	}
	return c
}

// again is the command that applies what was planned.
func (f *tuneFlags) again(o host.TuneOptions) string {
	words := []string{"twopath tune apply"}
	if o.Port != "" {
		words = append(words, o.Port)
	}
	if o.Profile != host.Throughput {
		words = append(words, "--profile "+o.Profile)
	}
	if len(f.only) > 0 {
		words = append(words, "--only "+strings.Join(f.only, ","))
	}
	for _, s := range f.set {
		words = append(words, "--set '"+s+"'")
	}
	return strings.Join(words, " ")
}

func (a *app) tuneApplyCommand() *cobra.Command {
	var f tuneFlags
	c := &cobra.Command{Use: "apply [IF]", Short: "Set it, with a journal to undo it by",
		Long: `apply shows the plan, writes down what is, and sets what should be. A knob that cannot be set puts back all that had been
set. The interface that the default route or an ssh session goes through is refused: a driver may drop its link for a second
or two.`,
		Example: `  sudo twopath tune apply
  sudo twopath tune apply enp3s0 --only rx_ring,adaptive_rx --set rx_usecs=10`, Args: exactly(0, 1, "at most one interface")}
	f.add(c)
	c.Flags().BoolVar(&f.force, "force", false, "also the interface that the default route or ssh goes through")
	c.RunE = func(_ *cobra.Command, args []string) error {
		o, err := f.options(args)
		if err != nil {
			return err
		}
		if why := carries(o.Port); why != nil && !f.force {
			return fail(exitMachine, "%w; or, if a second without it does no harm: --force", why)
		}
		if j, err := knob.Load("", knob.Tune); err != nil {
			return err
		} else if j != nil && !j.Rebooted() {
			return tuneError(fmt.Errorf("%w, on %s (journal %s)", knob.ErrTuned, j.Made.Format("2006-01-02 15:04"), j.Path()))
		}
		plan, err := host.TunePlan(o)
		if err != nil {
			return err
		}
		if !f.json {
			if err := a.showPlan(f, o, plan); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout)
		}
		if os.Geteuid() != 0 && o.Changes(plan) > 0 {
			return fail(exitMachine, "setting knobs needs root; run it with sudo")
		}
		j, err := host.TuneApply(o, plan)
		if err != nil {
			return tuneError(err)
		}
		return a.showOutcome(f.json, applied(o, j))
	}
	return c
}

// completePort offers the devices there are.
func completePort(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	devices, err := net.Interfaces()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, d := range devices {
		if d.Flags&net.FlagLoopback == 0 {
			out = append(out, d.Name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// tuneError adds what to type.
func tuneError(err error) error {
	var refused *knob.Refused
	switch {
	case errors.Is(err, knob.ErrTuned):
		return fail(exitMachine, "%w; undo that first: sudo twopath tune undo", err)
	case errors.As(err, &refused):
		return fail(exitMachine, "%w; what had been set is as it was before (leave the knob out: --only, or another --set)", err)
	}
	return fail(exitMachine, "%w", err)
}

func (a *app) tuneUndoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "undo", Short: "Put back what tune apply has set", Example: "  sudo twopath tune undo", Args: exactly(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			j, err := knob.Load("", knob.Tune)
			if err != nil {
				return err
			}
			if j != nil && os.Geteuid() != 0 {
				return fail(exitMachine, "setting knobs needs root; run it with sudo")
			}
			undone, rebooted, err := knob.Undo("", knob.Tune)
			if err != nil {
				return fail(exitMachine, "%w; the journal stays: try again (%s)", err, j.Path())
			}
			out := report.TuneOutcome{Did: "undo", Rebooted: rebooted}
			if j != nil {
				out.Port = j.Port
			}
			for _, u := range undone {
				r := report.TuneResult{Knob: u.Knob, Before: cmp.Or(u.After, u.Want), Want: u.Before, Now: u.Before}
				if u.Left != "" {
					r.Now, r.Note = "", "left alone: "+u.Left
				}
				out.Settings = append(out.Settings, r)
			}
			return a.showOutcome(asJSON, out)
		}}
	c.Flags().BoolVar(&asJSON, "json", false, "JSON on stdout")
	return c
}

// options makes them of what was typed.
func (f *tuneFlags) options(args []string) (host.TuneOptions, error) {
	o := host.TuneOptions{Profile: f.profile, Only: f.only, Set: map[string]string{}}
	for _, s := range f.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok {
			return o, fail(exitUsage, "--set %q: no value; as in --set rx_ring=2048", s)
		}
		if _, twice := o.Set[name]; twice {
			return o, fail(exitUsage, "--set %s: given twice", name)
		}
		v, err := knob.Parse(name, value)
		if err != nil {
			return o, err
		}
		o.Set[name] = v
	}
	if len(args) == 1 {
		d, err := host.Describe(args[0]) // by its name or an alternative one
		if err != nil {
			return o, fail(exitUsage, "%w; ip link lists the devices there are", err)
		}
		o.Port = d.Name
	}
	return o, nil
}

// carries says whether the host would be cut off if the port's link went down.
func carries(port string) error {
	if port == "" {
		return nil
	}
	return rig.Carries(port, sshClient())
}

func (a *app) showPlan(f tuneFlags, o host.TuneOptions, plan []host.Step) error {
	p := report.TunePlan{Port: o.Port, Profile: o.Profile}
	if o.Port != "" {
		p.Driver = knob.Driver(o.Port)
	}
	for _, s := range plan {
		p.Steps = append(p.Steps, report.TuneStep{Knob: s.Knob, Action: string(s.Action), Now: s.Now, Want: s.Want, Why: s.Why, Risk: s.Risk, Note: s.Note})
	}
	if f.json {
		return report.TunePlanJSON(a.stdout, p)
	}
	_, width := terminal(a.stdout)
	return report.TunePlanText(a.stdout, p, report.TextOptions{Color: colours(a.stdout), Width: width})
}

// applied is what a journal says was done.
func applied(o host.TuneOptions, j *knob.Journal) report.TuneOutcome {
	out := report.TuneOutcome{Did: "apply", Port: o.Port}
	if j == nil {
		return out
	}
	out.Journal = j.Path()
	for _, s := range j.Settings {
		r := report.TuneResult{Knob: s.Knob, Before: s.Before, Want: s.Want, Now: s.After}
		switch {
		case s.Want == "":
			r.Note = "moved by another knob's change; undo puts it back"
		case s.Rounded():
			r.Note = fmt.Sprintf("asked for %s: the driver made it %s", s.Want, s.After)
		}
		out.Settings = append(out.Settings, r)
	}
	return out
}

func (a *app) showOutcome(asJSON bool, out report.TuneOutcome) error {
	if asJSON {
		return report.TuneOutcomeJSON(a.stdout, out)
	}
	switch {
	case out.Rebooted:
		fmt.Fprintln(a.stdout, "the machine was started again since: the settings are gone with that, and so is the journal now")
		return nil
	case len(out.Settings) == 0 && out.Did == "undo":
		fmt.Fprintln(a.stdout, "nothing to undo: tune has set nothing")
		return nil
	case len(out.Settings) == 0:
		fmt.Fprintln(a.stdout, "nothing to change: everything is as wanted")
		return nil
	}
	_, width := terminal(a.stdout)
	if err := report.TuneOutcomeText(a.stdout, out, report.TextOptions{Color: colours(a.stdout), Width: width}); err != nil {
		return err
	}
	if out.Did == "apply" {
		fmt.Fprintf(a.stdout, "\njournal %s; put it back: sudo twopath tune undo\n", out.Journal)
	}
	return nil
}

func (a *app) tuneStatus() error {
	j, err := knob.Load("", knob.Tune)
	switch {
	case err != nil:
		return err
	case j == nil:
		fmt.Fprintln(a.stdout, "tune has set nothing; see what it would: twopath tune plan")
		return nil
	case j.Rebooted():
		fmt.Fprintln(a.stdout, "the machine was started again since the last tuning, which is gone with that; remove its journal: sudo twopath tune undo")
		return nil
	}
	if !j.Settled {
		fmt.Fprintln(a.stdout, "tune apply was broken off; put back what it may have set: sudo twopath tune undo")
		return nil
	}
	return a.showOutcome(false, applied(host.TuneOptions{Port: j.Port}, j))
}

// tuneList shows every knob.
func (a *app) tuneList() error {
	options := map[string]compare.ArmOption{}
	for _, o := range compare.Knobs() {
		options[o.Name] = o
	}
	for _, name := range knob.Names() {
		o, arm := options[name]
		if !arm {
			o = compare.ArmOption{Help: map[string]string{"queues": "queues of the port (ethtool -L); in a plan: --queues",
				"threaded": "NAPI runs in threads; in a plan: --placement"}[name]}
		}
		fmt.Fprintf(a.stdout, "%-21s %-8s %-24s %s\n", name, knob.Scope(name), takes(name, o), o.Help)
	}
	fmt.Fprintln(a.stdout, "\nall but queues and threaded are options of every arm, as in kernel:recvmmsg+netdev_budget=600")
	return nil
}

// takes says what a knob's values are.
func takes(name string, o compare.ArmOption) string {
	switch o.Kind {
	case compare.Choice:
		if slices.Equal(o.Values, []string{"on", "off"}) {
			return "on|off"
		}
		return "as in " + o.Values[0]
	case compare.Bytes:
		return "bytes, as in 8M"
	case compare.Nanoseconds:
		return "a time, as in 200us"
	case compare.CPUList:
		return "CPUs, as in 0-3,5 or none"
	}
	if name == "threaded" {
		return "on|off|busy"
	}
	if name == "queues" {
		return "1..1024"
	}
	return fmt.Sprintf("%d..%d", o.Min, o.Max)
}
