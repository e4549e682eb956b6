// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ReadPlan sets p from a YAML plan file: a mapping of [PlanKeys] to values as
// typed on the command line, where a list may be a YAML list and cpus a
// mapping. It overrides what p had. Every error names the line; a mistake in
// a key or value is a [*UsageError].
func (p *Plan) ReadPlan(r io.Reader) error {
	dec := yaml.NewDecoder(r)
	var doc yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return &UsageError{What: "plan", Token: "", Problem: "empty", Hint: "as in test: udp-rx"}
		}
		return &UsageError{What: "plan", Token: "YAML", Problem: strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return &UsageError{What: "plan", Token: "---", Problem: "more than one document in the file"}
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return &UsageError{What: "plan", Token: "line 1", Problem: "not a mapping of keys to values", Hint: "as in test: udp-rx"}
	}
	root := doc.Content[0]
	lines := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if before, twice := lines[key.Value]; twice {
			return &UsageError{What: "plan key", Token: key.Value, Problem: fmt.Sprintf("line %d: given before, on line %d", key.Line, before)}
		}
		lines[key.Value] = key.Line
		if err := p.setNode(key, value); err != nil {
			return atLine(err, key.Line)
		}
	}
	for _, pair := range [][2]string{{"size", "payload"}, {"count", "duration"}, {"queues", "workers"}} {
		if first, second := lines[pair[0]], lines[pair[1]]; first > 0 && second > 0 {
			return &UsageError{What: "plan key", Token: pair[1], Problem: fmt.Sprintf("line %d: %s is given too, on line %d", second, pair[0], first), Hint: "drop one"}
		}
	}
	return nil
}

func (p *Plan) setNode(key, value *yaml.Node) error {
	k, ok := lookupKey(key.Value)
	if !ok {
		return unknown("plan key", key.Value, "unknown", PlanKeys())
	}
	text, err := nodeText(key.Value, k, value)
	if err != nil {
		return err
	}
	return k.set(p, text)
}

// nodeText is a value as it would be typed.
func nodeText(key string, k planKey, value *yaml.Node) (string, error) {
	sep := cmp.Or(k.sep, ",")
	switch {
	case value.Kind == yaml.ScalarNode && value.Tag != "!!null":
		return value.Value, nil
	case value.Kind == yaml.SequenceNode && k.list:
		text, err := joinScalars(key, value, func(i int, s string) string { return sep + s })
		return strings.TrimPrefix(text, sep), err
	case value.Kind == yaml.MappingNode && key == "cpus":
		return joinScalars(key, value, func(i int, s string) string {
			if i%2 == 0 {
				return "," + s
			}
			return "=" + s
		})
	case value.Kind == yaml.ScalarNode:
		return "", &UsageError{What: "plan key", Token: key, Problem: "no value"}
	case value.Kind == yaml.AliasNode:
		return "", &UsageError{What: "plan key", Token: key, Problem: "YAML aliases are not taken here"}
	}
	return "", &UsageError{What: "plan key", Token: key, Problem: "takes one value"}
}

func joinScalars(key string, node *yaml.Node, prefixed func(int, string) string) (string, error) {
	var b strings.Builder
	for i, n := range node.Content {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			return "", &UsageError{What: "plan key", Token: key, Problem: fmt.Sprintf("line %d: an item is not a single value", n.Line)}
		}
		b.WriteString(prefixed(i, n.Value))
	}
	return strings.TrimPrefix(b.String(), ","), nil
}

// atLine puts the line in front of a usage error's problem.
func atLine(err error, line int) error {
	var usage *UsageError
	if errors.As(err, &usage) && !strings.HasPrefix(usage.Problem, "line ") {
		usage.Problem = fmt.Sprintf("line %d: %s", line, usage.Problem)
		return usage
	}
	return err
}

// YAML is the plan as a file that ReadPlan reads back to the same plan.
func (p *Plan) YAML() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("encode plan: %w", err)
	}
	return b.Bytes(), nil
}
