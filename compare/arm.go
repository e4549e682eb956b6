// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"
	"strconv"
	"strings"
)

// Engines.
const (
	Kernel = "kernel"
	XDP    = "xdp"
)

// ArmSpec is a parsed arm, "engine:variant[+option[=value]...]".
type ArmSpec struct {
	Engine  string
	Variant string
	// Options holds the options given, by name, with canonical values: "on"
	// for a bare flag, bytes for a size. Defaults are not filled in: the
	// engine knows its own, and the record says what was effective.
	Options map[string]string
}

// ParseArm parses an arm with the options of [DefaultGrammar]. Every error is
// a [*UsageError].
func ParseArm(s string) (ArmSpec, error) { return DefaultGrammar().Parse(s) }

// Parse parses one arm.
func (g *Grammar) Parse(s string) (ArmSpec, error) {
	parts := strings.Split(s, "+")
	engine, variant, found := strings.Cut(parts[0], ":")
	variants := g.variants(engine)
	if variants == nil {
		return ArmSpec{}, g.noEngine(s, engine)
	}
	if !found || variant == "" {
		return ArmSpec{}, &UsageError{What: "arm", Token: s, Problem: "no variant", Allowed: withPrefix(engine+":", variants)}
	}
	if !slices.Contains(variants, variant) {
		e := unknown("arm", variant, "no such variant of "+engine, variants)
		if other := g.engineOf(variant); other != "" {
			e.Nearest = other + ":" + variant
		}
		return ArmSpec{}, e
	}
	a := ArmSpec{Engine: engine, Variant: variant}
	for _, part := range parts[1:] {
		name, value, hasValue := strings.Cut(part, "=")
		opt, err := g.option(a, name)
		if err != nil {
			return ArmSpec{}, err
		}
		if _, twice := a.Options[name]; twice {
			return ArmSpec{}, &UsageError{What: "arm option", Token: name, Problem: "given twice in " + s}
		}
		canonical, err := opt.parse(value, hasValue)
		if err != nil {
			return ArmSpec{}, err
		}
		if a.Options == nil {
			a.Options = map[string]string{}
		}
		a.Options[name] = canonical
	}
	return a, nil
}

// noEngine explains a first token that is no engine; a bare variant name
// ("recvmmsg", "copy") is a likely one.
func (g *Grammar) noEngine(s, engine string) *UsageError {
	e := unknown("arm", engine, "no such engine", []string{Kernel, XDP})
	e.Hint = "an arm is engine:variant[+option[=value]...], as in kernel:recvmmsg+batch=64 or xdp:auto"
	if !strings.Contains(s, ":") {
		if other := g.engineOf(engine); other != "" {
			e.Nearest = other + ":" + engine
		}
	}
	return e
}

// String is the canonical name: options in the grammar's order, sizes with
// the largest binary suffix that divides them.
func (a ArmSpec) String() string { return DefaultGrammar().Format(a) }

// Format is the canonical name of a under g; Parse(Format(a)) gives a back.
func (g *Grammar) Format(a ArmSpec) string {
	var b strings.Builder
	b.WriteString(a.Engine + ":" + a.Variant)
	for _, opt := range g.Options {
		if v, ok := a.Options[opt.Name]; ok {
			b.WriteString("+" + opt.format(v))
		}
	}
	return b.String()
}

// Requested is the arm as the record keeps it: the variant and each option.
func (a ArmSpec) Requested() map[string]string {
	m := map[string]string{"variant": a.Variant}
	for k, v := range a.Options {
		m[k] = v
	}
	return m
}

// Option is the value of an option that was given, else "".
func (a ArmSpec) Option(name string) string { return a.Options[name] }

// Int is the value of a numeric option that was given, else otherwise.
func (a ArmSpec) Int(name string, otherwise int) int {
	if n, err := strconv.Atoi(a.Options[name]); err == nil {
		return n
	}
	return otherwise
}

// On reports whether a flag option was given and not switched off.
func (a ArmSpec) On(name string) bool {
	v, ok := a.Options[name]
	return ok && v != "off"
}

// Headline reports whether the arm may stand for its engine in a headline:
// xdp:asavie is a reference, not this program's own path, and kernel:nosocket
// delivers nothing to an application.
func (a ArmSpec) Headline() bool {
	return a.Variant != "asavie" && a.Variant != "nosocket"
}

// DefaultArms are the arms of a comparison for which none were named; none for a test that is not known.
func DefaultArms(test string) []string {
	t, _ := LookupTest(test)
	return slices.Clone(t.Default)
}

func withPrefix(prefix string, list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = prefix + s
	}
	return out
}
