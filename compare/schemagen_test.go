// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite schema.json and the golden files")

type object = map[string]any

// generateSchema describes what encoding/json makes of the record types, plus
// what their comments promise: counts are not negative, words are from a list.
func generateSchema() object {
	g := generator{defs: object{}}
	document := g.schemaOf(reflect.TypeFor[Document]())
	g.defs["Sweep"] = object{
		"type":     "object",
		"required": []string{"schema", "results"},
		"properties": object{
			"schema":  object{"const": SchemaID},
			"results": object{"type": "array", "items": document},
		},
	}
	return object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         "twopath/v1.schema.json",
		"title":       "twopath record, " + SchemaID,
		"description": "One document, or a sweep of documents. Fields may be added; none is renamed, removed or given another unit. Counts are packets of this run, times are ns unless named seconds, frame sizes include the FCS, bit rates include preamble and gap. A missing number is null.",
		"if":          object{"required": []string{"results"}},
		"then":        object{"$ref": "#/$defs/Sweep"},
		"else":        document,
		"$defs":       g.defs,
	}
}

type generator struct{ defs object }

func (g *generator) schemaOf(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[Size]():
		return object{"oneOf": []any{object{"type": "integer", "minimum": 1}, object{"const": "imix"}, object{"type": "null"}}}
	case reflect.TypeFor[Queues]():
		return object{"oneOf": []any{object{"type": "integer"}, object{"type": "array", "items": object{"type": "integer"}}, object{"type": "null"}}}
	case reflect.TypeFor[TrialKind]():
		return enum(Measured, Warmup, AA, LimitRun, Headroom, Pilot, SearchRun)
	case reflect.TypeFor[Irregular]():
		return enum(AtMaxLoad, AtMinLoad, EndedEarly)
	case reflect.TypeFor[Grade]():
		return enum(Exact, Bounded)
	case reflect.TypeFor[Word]():
		return enum(Faster, Slower, Equivalent, Inconclusive, Insufficient, NotComparable)
	case reflect.TypeFor[Bound]():
		return enum(NoBound, LowerBound)
	}
	if t.Kind() != reflect.Pointer && t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int:
		return object{"type": "integer"}
	case reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Pointer:
		return object{"oneOf": []any{g.schemaOf(t.Elem()), object{"type": "null"}}}
	case reflect.Slice:
		return object{"type": "array", "items": g.schemaOf(t.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": g.schemaOf(t.Elem()), "minItems": t.Len(), "maxItems": t.Len()}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": g.schemaOf(t.Elem())}
	case reflect.Struct:
		return g.structOf(t)
	}
	panic("no schema for " + t.String())
}

func (g *generator) structOf(t reflect.Type) object {
	ref := object{"$ref": "#/$defs/" + t.Name()}
	if _, done := g.defs[t.Name()]; done {
		return ref
	}
	properties, required := object{}, []string{}
	g.defs[t.Name()] = object{"type": "object", "properties": properties}
	for i := range t.NumField() {
		name, options, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		properties[name] = g.schemaOf(t.Field(i).Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			required = append(required, name)
		}
	}
	if t == reflect.TypeFor[Document]() {
		properties["schema"] = object{"const": SchemaID}
	}
	if len(required) > 0 {
		g.defs[t.Name()].(object)["required"] = required
	}
	return ref
}

func enum[T ~string](values ...T) object { return object{"enum": values} }

func TestSchemaFileIsCurrent(t *testing.T) {
	want, err := json.MarshalIndent(generateSchema(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("schema.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if Schema() != string(want) {
		t.Error("schema.json is not what the types say; run go test ./compare -run TestSchemaFileIsCurrent -update")
	}
}
