// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"

	"twopath/compare"
)

// JSON writes one document as it is, and several as a sweep, in the schema
// twopath/v1 (see compare).
func JSON(w io.Writer, docs []compare.Document) error {
	var err error
	if len(docs) == 1 {
		d := docs[0]
		err = d.Write(w)
	} else {
		err = compare.WriteResults(w, docs)
	}
	if err != nil {
		return fmt.Errorf("json report: %w", err)
	}
	return nil
}
