// SPDX-License-Identifier: Apache-2.0

// Package host tells what a machine is and whether it can measure: facts for the record, and the doctor's checks.
// It looks and tries, and changes nothing that stays. What it can not see without privileges is said to be unknown, or
// a check that was skipped and why: nothing here fails because it is not root.
package host
