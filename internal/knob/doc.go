// SPDX-License-Identifier: Apache-2.0

// Package knob reads and sets the host's knobs by name: sysctls, what ethtool sets of a port, the port's files in sysfs,
// its interrupts. A change is journalled before it is made, read back afterwards, and can be undone after a kill. The names
// are those of [compare.Knobs], and a few that no arm may set.
package knob
