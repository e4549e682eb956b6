// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"

	"golang.org/x/sys/unix"

	"twopath/compare"
)

func hostFacts() compare.Host {
	var u unix.Utsname
	_ = unix.Uname(&u)
	return compare.Host{Kernel: unix.ByteSliceToString(u.Release[:]), Arch: unix.ByteSliceToString(u.Machine[:]), CPUs: runtime.NumCPU()}
}
