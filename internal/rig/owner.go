// SPDX-License-Identifier: Apache-2.0

package rig

import "twopath/internal/process"

// owner names the process that a journal belongs to.
type owner = process.Owner

func thisProcess() (owner, error) { return process.This() }
