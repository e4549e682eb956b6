// SPDX-License-Identifier: Apache-2.0

// Package trial runs one trial of one arm: it places the SUT's receive processing, starts an agent on each side, lets the
// peer generate and the SUT receive, reads every witness before the first frame and after the last has drained, and makes
// the record of it.
package trial
