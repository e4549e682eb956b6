// SPDX-License-Identifier: Apache-2.0

// Package capture reads packet captures (pcap, pcapng) for replaying: whole frames as Ethernet, with their times, and a count
// of every record that cannot be sent and why. What is left out is decided here, once, so that it is the same for every arm.
package capture
