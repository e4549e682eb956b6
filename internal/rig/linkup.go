// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"net"
)

// LinkUp says what is wrong with a side's link: that it was set down, or that its carrier is gone. Somebody, or a driver's
// reset, may do that while a run is under way.
func (s *Side) LinkUp() error {
	var dev *net.Interface
	if err := s.Do(func() (err error) { dev, err = net.InterfaceByIndex(s.Index); return err }); err != nil {
		return &Refusal{ID: "link", What: fmt.Sprintf("%s of the %s is gone", s.Name, s.Role), Cure: "see what removed it, and run again", Err: err}
	}
	switch {
	case dev.Flags&net.FlagUp == 0:
		return &Refusal{ID: "link", What: fmt.Sprintf("%s of the %s was set down", s.Name, s.Role), Cure: "see what set it down, and run again"}
	case dev.Flags&net.FlagRunning == 0:
		return &Refusal{ID: "link", What: fmt.Sprintf("%s of the %s has lost its carrier", s.Name, s.Role), Cure: "see to the cable and the other end, and run again"}
	}
	return nil
}
