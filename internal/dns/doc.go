// SPDX-License-Identifier: Apache-2.0

// Package dns answers queries for one small zone, and makes queries for it. Answers are packed when the zone is read
// (github.com/miekg/dns), so that a query costs a look into a table and a copy. It knows messages only, no sockets and no
// frames: both engines use it alike.
package dns
