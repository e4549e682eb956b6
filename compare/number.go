// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
)

// Num makes an optional number: nil, hence null, when v is NaN or infinite.
func Num(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// Val is the value of an optional number, NaN when it is missing.
func Val(p *float64) float64 {
	if p == nil {
		return math.NaN()
	}
	return *p
}

// MarshalJSON writes d with every optional number that is not finite as null,
// and every missing list as []. A number that may not be missing and is not
// finite is an error naming the field. Non-finite optional numbers are set to
// nil in d's own arms, trials and comparisons.
func (d Document) MarshalJSON() ([]byte, error) {
	if err := dropNonFinite(reflect.ValueOf(&d).Elem(), ""); err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	d.normalise()
	type plain Document // without this method
	return json.Marshal(plain(d))
}

// normalise gives lists their empty form, so that readers in other languages
// need not tell null from [].
func (d *Document) normalise() {
	notNil(&d.Argv)
	notNil(&d.Plan.Arms)
	notNil(&d.Plan.Sizes)
	notNil(&d.Plan.Rates)
	notNil(&d.Warnings)
	notNil(&d.Arms)
	notNil(&d.Trials)
	notNil(&d.Comparisons)
	for i := range d.Arms {
		notNil(&d.Arms[i].Ledger)
		if d.Arms[i].Requested == nil {
			d.Arms[i].Requested = map[string]string{}
		}
	}
	for i := range d.Trials {
		notNil(&d.Trials[i].Ledger)
		if e := d.Trials[i].Errors; e != nil && e.By == nil {
			e.By = map[string]uint64{}
		}
	}
	if d.Rig.CPUs == nil {
		d.Rig.CPUs = CPUs{}
	}
}

func notNil[T any](s *[]T) {
	if *s == nil {
		*s = []T{}
	}
}

// dropNonFinite walks structs, slices and pointers below v.
func dropNonFinite(v reflect.Value, path string) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		if !finiteAll(v.Elem()) {
			v.SetZero()
			return nil
		}
		return dropNonFinite(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if err := dropNonFinite(v.Field(i), path+"."+f.Name); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if err := dropNonFinite(v.Index(i), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
	case reflect.Float64:
		if !finite(v.Float()) {
			return fmt.Errorf("%s is %v", path[1:], v.Float())
		}
	}
	return nil
}

// finiteAll reports whether v, a number or an array of numbers, is finite; true for all else.
func finiteAll(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Float64:
		return finite(v.Float())
	case reflect.Array:
		for i := range v.Len() {
			if !finiteAll(v.Index(i)) {
				return false
			}
		}
	}
	return true
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
