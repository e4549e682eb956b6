// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Grammar says which arms and options exist.
type Grammar struct {
	Options  []ArmOption       // in canonical order; host knobs last, see [Knobs]
	Reserved map[string]string // host settings that are no option of an arm, and where to set them
}

// ValueKind is what an option takes.
type ValueKind int

const (
	_           ValueKind = iota
	Choice                // one of Values
	Flag                  // bare, or =on or =off
	Number                // a whole number in Min..Max
	PowerOf2              // the same, and a power of two
	Bytes                 // a size in bytes with an optional binary suffix k, M, G, in Min..Max
	AutoNumber            // a whole number in Min..Max, or bare: let the engine choose, stored as 0
	Nanoseconds           // a whole number of ns, or a duration as in 200us, in Min..Max ns
	CPUList               // CPUs as in 0-3,5, or none
)

// ArmOption is one "+name[=value]".
type ArmOption struct {
	Name     string
	Kind     ValueKind
	Values   []string // of a Choice
	Min, Max uint64
	// For lists the "engine:variant" arms that take the option; Choices
	// restricts Values further for some of them. A host knob is every arm's.
	For     []string
	Choices map[string][]string
	// Most is a smaller Max of some arms.
	Most  map[string]uint64
	Scope string // Machine or Port of a host knob; "" is an arm's own
	Help  string
}

// OptionsOf lists the options of an arm, "engine:variant", its own first.
func OptionsOf(arm string) []ArmOption {
	return slices.DeleteFunc(DefaultGrammar().Options, func(o ArmOption) bool { return !o.of(arm) })
}

// of tells whether an arm takes the option.
func (o ArmOption) of(arm string) bool { return o.Scope != "" || slices.Contains(o.For, arm) }

// DefaultGrammar is the grammar of this version.
func DefaultGrammar() *Grammar {
	sockets := []string{"kernel:epoll", "kernel:recvmmsg"}
	senders := []string{"kernel:write", "kernel:sendto", "kernel:sendmmsg"}
	own := []string{"xdp:auto", "xdp:zerocopy", "xdp:copy", "xdp:generic"}
	join := func(lists ...[]string) []string { return slices.Concat(lists...) }
	asavie := []string{"xdp:asavie"}
	kernelWaits := []string{"block", "spin", "busypoll"}
	g := &Grammar{
		Options: []ArmOption{
			{Name: "batch", Kind: Number, Min: 1, Max: 4096, For: join([]string{"kernel:recvmmsg", "kernel:sendmmsg"}, own),
				Most: map[string]uint64{"kernel:recvmmsg": 1024, "kernel:sendmmsg": 1024}, // UIO_MAXIOV: the kernel takes no more messages in one call
				Help: "packets per system call or ring visit"},
			{Name: "wait", Kind: Choice, Values: []string{"block", "spin", "poll", "busypoll"}, For: join([]string{"kernel:recvmmsg"}, own, asavie),
				Choices: map[string][]string{Kernel: kernelWaits, XDP: {"spin", "poll", "busypoll"}, "xdp:asavie": {"poll", "spin"}},
				Help:    "what the reader does when nothing is there"},
			{Name: "rcvbuf", Kind: Bytes, Min: 4096, Max: 1 << 30, For: sockets,
				Help: "SO_RCVBUF as asked for; the kernel doubles it"},
			{Name: "sndbuf", Kind: Bytes, Min: 4096, Max: 1 << 30, For: senders,
				Help: "SO_SNDBUF as asked for; the kernel doubles it"},
			{Name: "gso", Kind: Flag, For: []string{"kernel:sendmmsg"},
				Help: "UDP_SEGMENT: several datagrams of a flow in one buffer"},
			{Name: "gro", Kind: Flag, For: []string{"kernel:recvmmsg"},
				Help: "UDP_GRO: several datagrams of a flow in one buffer"},
			{Name: "reuseport", Kind: AutoNumber, Min: 1, Max: 1024, For: sockets,
				Help: "SO_REUSEPORT sockets, one thread each; bare: one per queue"},
			{Name: "ring", Kind: PowerOf2, Min: 64, Max: 1 << 16, For: join(own, asavie),
				Help: "descriptors in the receive ring, or, where the SUT sends, the transmit ring"},
			{Name: "csum", Kind: Choice, Values: []string{"on", "off"}, For: join(own, asavie),
				Help: "verify IP and UDP checksums, as the kernel does for its reader"},
		},
		Reserved: planKnobs(),
	}
	g.Options = append(g.Options, Knobs()...)
	return g
}

func (g *Grammar) variants(engine string) []string {
	return variants(engine)
}

func (g *Grammar) engineOf(variant string) string {
	for _, engine := range []string{Kernel, XDP} {
		if slices.Contains(g.variants(engine), variant) {
			return engine
		}
	}
	return ""
}

// option finds the option called name for arm a, with the choices open to a.
func (g *Grammar) option(a ArmSpec, name string) (ArmOption, error) {
	arm := a.Engine + ":" + a.Variant
	var here, knobs, takers []string
	for _, opt := range g.Options {
		if opt.of(arm) {
			if opt.Name == name {
				for _, who := range []string{a.Engine, arm} { // the narrower rule last
					if c := opt.Choices[who]; c != nil {
						opt.Values = c
					}
				}
				if m := opt.Most[arm]; m != 0 {
					opt.Max = m
				}
				return opt, nil
			}
			if opt.Scope == "" {
				here = append(here, opt.Name)
			} else {
				knobs = append(knobs, opt.Name)
			}
		}
		if opt.Name == name {
			takers = opt.For
		}
	}
	hint := "host knobs are options too: twopath tune list"
	switch why := g.Reserved[name]; {
	case why != "":
		return ArmOption{}, &UsageError{What: "arm option", Token: name, Problem: "not an option of an arm", Hint: why}
	case takers != nil:
		e := &UsageError{What: "arm option", Token: name, Problem: fmt.Sprintf("not an option of %s, only of %s", arm, strings.Join(takers, ", ")),
			Allowed: here, Hint: hint}
		return ArmOption{}, e
	case len(here) == 0:
		return ArmOption{}, &UsageError{What: "arm option", Token: name, Problem: arm + " takes no options but host knobs",
			Nearest: nearest(name, knobs), Hint: "type " + arm + "; " + hint}
	}
	e := unknown("arm option", name, "no such option of "+arm, here)
	if e.Hint = hint; e.Nearest == "" {
		e.Nearest = nearest(name, knobs)
	}
	return ArmOption{}, e
}

// Parse gives the canonical value; every error is a [*UsageError].
func (o ArmOption) Parse(value string) (string, error) { return o.parse(value, true) }

// parse gives the canonical value.
func (o ArmOption) parse(value string, hasValue bool) (string, error) {
	what := "arm option"
	if o.Scope != "" {
		what = "host knob"
	}
	bad := func(problem string, allowed ...string) (string, error) {
		e := unknown(what, o.Name+"="+value, problem, allowed)
		e.Nearest = nearest(value, allowed)
		return "", e
	}
	if !hasValue {
		switch o.Kind {
		case Flag:
			return "on", nil
		case AutoNumber:
			return "0", nil
		case Choice:
			return "", &UsageError{What: what, Token: o.Name, Problem: "needs a value", Allowed: withPrefix(o.Name+"=", o.Values)}
		}
		return "", &UsageError{What: what, Token: o.Name, Problem: "needs a value", Hint: fmt.Sprintf("as in +%s=%s", o.Name, o.example())}
	}
	switch o.Kind {
	case Choice:
		if !slices.Contains(o.Values, value) {
			return bad("no such value", o.Values...)
		}
		return value, nil
	case Flag:
		if value != "on" && value != "off" {
			return bad("no such value", "on", "off")
		}
		return value, nil
	case Bytes:
		n, err := parseBytes(value)
		if err != nil || n < o.Min || n > o.Max {
			return bad(fmt.Sprintf("not a size in %s..%s bytes, as in 256k or 8M", formatBytes(o.Min), formatBytes(o.Max)))
		}
		return strconv.FormatUint(n, 10), nil
	case Nanoseconds:
		n, err := parseNanoseconds(value)
		if err != nil || n < o.Min || n > o.Max {
			return bad(fmt.Sprintf("not a time in %d..%d ns, as in 200000 or 200us", o.Min, o.Max))
		}
		return strconv.FormatUint(n, 10), nil
	case CPUList:
		list, err := ParseCPUList(value)
		if err != nil {
			return bad("not a list of CPUs, as in 0-3,5 or none")
		}
		return FormatCPUs(list), nil
	}
	n, err := strconv.ParseUint(value, 10, 31)
	if err != nil || n < o.Min || n > o.Max {
		return bad(fmt.Sprintf("not a whole number in %d..%d", o.Min, o.Max))
	}
	if o.Kind == PowerOf2 && n&(n-1) != 0 {
		return bad("not a power of two")
	}
	return strconv.FormatUint(n, 10), nil
}

func (o ArmOption) example() string {
	switch o.Kind {
	case Bytes:
		return "8M"
	case PowerOf2:
		return "4096"
	case Nanoseconds:
		return "200us"
	case CPUList:
		return "0-1"
	}
	return "64"
}

// format is the option as typed, for a canonical value.
func (o ArmOption) format(value string) string {
	switch {
	case o.Kind == Flag && value == "on", o.Kind == AutoNumber && value == "0":
		return o.Name
	case o.Kind == Bytes:
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			value = formatBytes(n)
		}
	}
	return o.Name + "=" + value
}
