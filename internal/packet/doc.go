// SPDX-License-Identifier: Apache-2.0

// Package packet holds header types over []byte, checksums, frame templates and the stamp that every test frame
// carries. Nothing here allocates on the packet path. Frames are what a driver sees: without preamble and FCS.
package packet
