// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Causes of a record that cannot be read, for errors.Is.
var (
	ErrNotRecord = errors.New("not a twopath record")
	ErrVersion   = errors.New("record of another schema version")
	ErrTruncated = errors.New("record is cut off")
	ErrEmpty     = errors.New("no record in the input")
)

// results is a sweep as written.
type results struct {
	Schema  string     `json:"schema"`
	Results []Document `json:"results"`
}

// Write writes d as one line of JSON, so that a file of several is NDJSON.
func (d *Document) Write(w io.Writer) error {
	d.Schema = SchemaID
	b, err := json.Marshal(d)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// WriteResults writes a sweep, {"schema":"twopath/v1","results":[...]}, as one line.
func WriteResults(w io.Writer, docs []Document) error {
	all := results{Schema: SchemaID, Results: make([]Document, len(docs))}
	copy(all.Results, docs)
	for i := range all.Results {
		all.Results[i].Schema = SchemaID
	}
	b, err := json.Marshal(all)
	if err != nil {
		return err
	}
	if _, err := w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write records: %w", err)
	}
	return nil
}

// Read reads every record in r: one document, a sweep, or any number of
// either one after another (NDJSON). Unknown fields are ignored, for the
// schema may grow. The documents before a bad one are returned with its
// error, which wraps [ErrNotRecord], [ErrVersion], [ErrTruncated] or
// [ErrEmpty] and says which record, and at which byte.
func Read(r io.Reader) ([]Document, error) {
	dec := json.NewDecoder(r)
	var docs []Document
	for n := 1; ; n++ {
		at := dec.InputOffset()
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			switch {
			case err == io.EOF && n == 1:
				return nil, fmt.Errorf("read records: %w", ErrEmpty)
			case err == io.EOF:
				return docs, nil
			}
			return docs, fmt.Errorf("read record %d, from byte %d: %w", n, at, decodeCause(err))
		}
		more, err := decode(raw)
		docs = append(docs, more...)
		if err != nil {
			return docs, fmt.Errorf("read record %d, from byte %d: %w", n, at, err)
		}
	}
}

// decode reads one JSON value: a document or a sweep.
func decode(raw []byte) ([]Document, error) {
	var head struct {
		Schema  *string           `json:"schema"`
		Results []json.RawMessage `json:"results"`
	}
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return nil, fmt.Errorf("%w: a JSON value, but no object", ErrNotRecord)
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("%w: %v", ErrNotRecord, err)
	}
	if err := checkSchema(head.Schema); err != nil {
		return nil, err
	}
	if head.Results == nil {
		d, err := decodeDocument(raw)
		if err != nil {
			return nil, err
		}
		return []Document{d}, nil
	}
	var docs []Document
	for i, one := range head.Results {
		d, err := decodeDocument(one)
		if err != nil {
			return docs, fmt.Errorf("result %d: %w", i+1, err)
		}
		docs = append(docs, d)
	}
	return docs, nil
}

func decodeDocument(raw []byte) (Document, error) {
	var head struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return Document{}, fmt.Errorf("%w: %v", ErrNotRecord, err)
	}
	if err := checkSchema(head.Schema); err != nil {
		return Document{}, err
	}
	var d Document
	if err := json.Unmarshal(raw, &d); err != nil {
		return Document{}, fmt.Errorf("%w: %v", ErrNotRecord, err)
	}
	return d, nil
}

func checkSchema(schema *string) error {
	switch {
	case schema == nil:
		return fmt.Errorf("%w: it has no \"schema\"", ErrNotRecord)
	case *schema == SchemaID:
		return nil
	case strings.HasPrefix(*schema, "twopath/"):
		return fmt.Errorf("%w: it says %q, this program reads %q", ErrVersion, *schema, SchemaID)
	}
	return fmt.Errorf("%w: its schema is %q, not %q", ErrNotRecord, *schema, SchemaID)
}

func decodeCause(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: the input ends inside it", ErrTruncated)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("%w: byte %d: %v", ErrNotRecord, syntax.Offset, err)
	}
	return err
}
