// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"twopath/bpf"
	"twopath/xsk"
)

// cured ends an error with the next thing to type. Errors leave an agent as text, so this is the last place that knows
// what they are.
func cured(err error) error {
	var foreign *bpf.ForeignProgramError
	var mtu *bpf.MTUError
	var native *bpf.NativeUnsupportedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &foreign):
		return fmt.Errorf("%w; it is left alone: stop its owner, or detach it yourself (ip link set %s xdp off)", err, foreign.Interface)
	case errors.As(err, &mtu) && mtu.Limit > 0:
		return fmt.Errorf("%w; lower it (ip link set %s mtu %d), at both ends of a veth", err, mtu.Name, mtu.Limit)
	case errors.As(err, &native):
		return fmt.Errorf("%w; use the arm xdp:generic", err)
	case errors.Is(err, xsk.ErrNoZeroCopy):
		return fmt.Errorf("%w; use the arm xdp:auto or xdp:copy", err)
	case errors.Is(err, xsk.ErrInUse):
		return fmt.Errorf("%w; stop the program that has the queue (ss --xdp -p shows it where the kernel can tell)", err)
	}
	return err
}
