// SPDX-License-Identifier: Apache-2.0

// Package report turns records of measurements into text, JSON, CSV and HTML.
//
// Every report is a pure function of records (compare.Document): it reads no
// clock, no environment and no terminal, and the same record always gives the
// same bytes. A missing number prints as "-" and is never 0; a loss that is not
// zero never prints as zero.
//
// [Text] is the screen, [TextAll] the screen of a sweep or of several records;
// [JSON], [CSV], [CSVArms], [CSVComparisons] and [HTML] are the other forms.
// [Diff] compares the records of two runs. [Progress] and [DoctorText] render
// what the command line shows beside them.
package report
