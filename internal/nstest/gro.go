// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"fmt"

	"github.com/safchain/ethtool"
)

// setGRO switches generic receive offload of the named device; on veth that is what starts NAPI (drivers/net/veth.c).
func setGRO(name string, on bool) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	return e.Change(name, map[string]bool{"rx-gro": on})
}
