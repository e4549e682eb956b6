// SPDX-License-Identifier: Apache-2.0

// Package reproduce holds published measurements as data: their figures, and the steps that repeat them here. One file a
// source. It measures nothing and prints nothing: steps are plans for a session, and reports set the figures beside ours.
package reproduce
