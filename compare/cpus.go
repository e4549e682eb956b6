// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// CPUs gives each role its CPU numbers, one per queue or thread.
type CPUs map[string][]int

// CPURoles are the roles a CPU can be given to: the SUT's readers, the
// peer's generators, the NAPI of either, and all other threads.
func CPURoles() []string { return []string{"sut", "peer", "napi", "peer-napi", "other"} }

const maxCPU = 8191 // CONFIG_NR_CPUS of the largest distribution kernels, less one

// ParseCPUs reads role=list,...: sut=0,peer=1,napi=0. A list is numbers and
// ranges joined by "+": sut=0-3, sut=0+2+4-6.
func ParseCPUs(s string) (CPUs, error) {
	cpus := CPUs{}
	for _, field := range strings.Split(s, ",") {
		role, list, ok := strings.Cut(strings.TrimSpace(field), "=")
		if !ok {
			return nil, &UsageError{What: "cpus", Token: field, Problem: "not role=cpu", Hint: "as in sut=0,peer=1"}
		}
		if !slices.Contains(CPURoles(), role) {
			return nil, unknown("cpus", role, "no such role", CPURoles())
		}
		if cpus[role] != nil {
			return nil, &UsageError{What: "cpus", Token: role, Problem: "given twice"}
		}
		numbers, err := parseCPUList(list)
		if err != nil {
			return nil, err
		}
		cpus[role] = numbers
	}
	return cpus, nil
}

func parseCPUList(list string) ([]int, error) {
	var out []int
	for _, part := range strings.Split(list, "+") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 16)
		hi, err2 := strconv.ParseUint(last, 10, 16)
		if err1 != nil || err2 != nil || hi < lo || hi > maxCPU {
			return nil, &UsageError{What: "cpus", Token: part, Problem: fmt.Sprintf("not a CPU number or a range in 0..%d", maxCPU), Hint: "as in 0, 0-3 or 0+2"}
		}
		for n := int(lo); n <= int(hi); n++ {
			if slices.Contains(out, n) {
				return nil, &UsageError{What: "cpus", Token: list, Problem: fmt.Sprintf("CPU %d given twice", n)}
			}
			out = append(out, n)
		}
	}
	return out, nil
}

// String is the assignment as typed, roles in the order of [CPURoles].
func (c CPUs) String() string {
	var fields []string
	for _, role := range CPURoles() {
		if len(c[role]) == 0 {
			continue
		}
		var parts []string
		list := c[role]
		for i := 0; i < len(list); {
			j := i
			for j+1 < len(list) && list[j+1] == list[j]+1 {
				j++
			}
			if j == i {
				parts = append(parts, strconv.Itoa(list[i]))
			} else {
				parts = append(parts, fmt.Sprintf("%d-%d", list[i], list[j]))
			}
			i = j + 1
		}
		fields = append(fields, role+"="+strings.Join(parts, "+"))
	}
	return strings.Join(fields, ",")
}

// MarshalYAML writes the assignment as typed.
func (c CPUs) MarshalYAML() (any, error) { return c.String(), nil }
