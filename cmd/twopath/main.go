// SPDX-License-Identifier: Apache-2.0

// Command twopath runs the same traffic through the kernel network stack and through AF_XDP on the same NIC, and says what
// the difference is, where every lost packet went, and whether the difference is real.
package main

import (
	"os"
)

func main() {
	os.Exit(execute(os.Args, os.Stdin, os.Stdout, os.Stderr))
}
