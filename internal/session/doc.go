// SPDX-License-Identifier: Apache-2.0

// Package session carries out a plan on a bench: it measures the rig's limit and the generator's headroom, chooses each
// arm's setting in pilot trials, runs the schedule, and makes one document for each cell of size and rate.
package session
