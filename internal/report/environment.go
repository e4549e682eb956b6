// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"

	"twopath/compare"
)

// environment lists what differs between the circumstances of two records.
func environment(before, after *compare.Document) []string {
	var out []string
	differ := func(what, b, a string) {
		if b != a {
			out = append(out, fmt.Sprintf("%s: %s -> %s", what, orDash(b), orDash(a)))
		}
	}
	hosts := func(who string, b, a *compare.Host) {
		differ(who+"host", b.Name, a.Name)
		differ(who+"kernel", b.Kernel, a.Kernel)
		differ(who+"architecture", b.Arch, a.Arch)
		differ(who+"CPU", b.CPUModel, a.CPUModel)
		differ(who+"CPUs", thousands(int64(b.CPUs)), thousands(int64(a.CPUs)))
		differ(who+"virtualisation", b.Virtual, a.Virtual)
		for _, k := range sortedKeys(b.Facts, a.Facts) {
			differ(who+k, b.Facts[k], a.Facts[k])
		}
	}
	hosts("", &before.Host, &after.Host)
	var none compare.Host
	hosts("peer ", orZero(before.PeerHost, &none), orZero(after.PeerHost, &none))
	differ("twopath", before.Version, after.Version)
	differ("rig", before.Rig.Kind, after.Rig.Kind)
	differ("driver", before.Rig.Driver, after.Rig.Driver)
	differ("placement", before.Rig.Placement, after.Rig.Placement)
	differ("CPU roles", fmt.Sprint(before.Rig.CPUs), fmt.Sprint(after.Rig.CPUs))
	differ("sender", before.Rig.Generator.Method, after.Rig.Generator.Method)
	differ("application work", before.Plan.Work.String(), after.Plan.Work.String())
	for i := range before.Arms {
		b := &before.Arms[i]
		for k := range after.Arms {
			if a := &after.Arms[k]; a.Name == b.Name {
				bs, as := settingsMap(b), settingsMap(a)
				for _, name := range sortedKeys(bs, as) {
					differ(b.Name+" "+name, bs[name], as[name])
				}
			}
		}
	}
	return out
}

func settingsMap(a *compare.Arm) map[string]string {
	out := map[string]string{}
	for _, s := range settings(a) {
		out[s[0]] = s[1]
	}
	return out
}

func sortedKeys(maps ...map[string]string) []string {
	var keys []string
	for _, m := range maps {
		for k := range m {
			if !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.Sort(keys)
	return keys
}

func orZero(h, zero *compare.Host) *compare.Host {
	if h == nil {
		return zero
	}
	return h
}

func orDash(s string) string {
	if s == "" {
		return missing
	}
	return s
}
