// SPDX-License-Identifier: Apache-2.0

// Package archtest holds the tree to ARCHITECTURE.md: who may import whom, where unsafe code lives, and what nothing
// below cmd does. It has tests only. Each rule is a function over parsed files, which is also shown a file that breaks it.
package archtest
