// SPDX-License-Identifier: Apache-2.0

// Package compare plans an A/B measurement of two packet paths, holds the
// public record of one (schema "twopath/v1"), orders its trials, and turns
// the trials into a verdict.
//
// It is pure: it opens nothing, measures nothing and prints nothing. A caller
// parses a [Plan], builds a [Schedule], hands [Run] a function that performs
// one trial, and gets the trials back; [Conclude] fills in the arms, the
// comparisons and the verdict. [Read] and [Document.Write] move records in
// and out; every report is a function of a [Document] alone.
//
// Units: frame sizes are Ethernet frames with FCS, in bytes; bit rates are on
// the wire, frame plus 20 bytes of preamble and gap (RFC 2544, section 20);
// times are nanoseconds unless the name says seconds.
package compare
