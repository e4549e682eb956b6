// SPDX-License-Identifier: Apache-2.0

// Package fragments makes the traffic of the test of that name: UDP datagrams in IP fragments, in order or with one of the
// mistakes that reassembly has to get right. It is a list of frames with the time each is due, made before anything is sent.
package fragments
