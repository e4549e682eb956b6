// SPDX-License-Identifier: Apache-2.0

package compare

import _ "embed"

//go:embed schema.json
var schema string // a constant; embed needs a variable

// Schema is the JSON Schema (draft 2020-12) of what [Document.Write] and
// [WriteResults] write. It allows further fields, as the schema may grow.
func Schema() string { return schema }
