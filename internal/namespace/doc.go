// SPDX-License-Identifier: Apache-2.0

// Package namespace runs functions on threads of their own inside network namespaces, and opens what sysfs shows of a
// namespace's devices. It changes nothing that outlives the thread.
package namespace
