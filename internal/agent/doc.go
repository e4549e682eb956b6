// SPDX-License-Identifier: Apache-2.0

// Package agent is the two-sided protocol between the controller and the process that stands at one end of the cable.
//
// An agent is the same binary started as `twopath agent` inside the namespace of its side (or on another host through
// ssh). The controller speaks JSON-RPC 2.0 to it over its standard input and output, one header-framed message at a
// time. One agent serves one trial of one arm: hello, prepare, start, counters, run or drain, finish, counters, bye.
// Live counters come as notifications once a second. When its input ends, an agent stops what it does and leaves, so
// that a controller that dies takes its agents with it.
package agent
