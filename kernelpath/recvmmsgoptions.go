// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"fmt"
	"time"
)

// DefaultBusyPoll is how long one call polls the device before it sleeps (SO_BUSY_POLL).
const DefaultBusyPoll = 50 * time.Microsecond

// RecvmmsgOptions are the options of a [Recvmmsg] receiver.
type RecvmmsgOptions struct {
	Socket
	Wait           Wait          // 0 means WaitBlock
	BusyPoll       time.Duration // WaitBusyPoll only: SO_BUSY_POLL, whole microseconds; 0 means DefaultBusyPoll
	BusyPollBudget int           // WaitBusyPoll only: packets per poll, SO_BUSY_POLL_BUDGET; 0 means 64
	GRO            bool          // take aggregates from the kernel and split them here (UDP_GRO)
}

func (o *RecvmmsgOptions) complete() error {
	if err := o.Socket.complete(); err != nil {
		return err
	}
	if o.Wait == WaitDefault {
		o.Wait = WaitBlock
	}
	if o.Wait < WaitBlock || o.Wait > WaitSpin {
		return fmt.Errorf("options: Wait: %v is not a policy", o.Wait)
	}
	if o.Wait != WaitBusyPoll {
		if o.BusyPoll != 0 {
			return fmt.Errorf("options: BusyPoll: has no meaning with Wait %v", o.Wait)
		}
		if o.BusyPollBudget != 0 {
			return fmt.Errorf("options: BusyPollBudget: has no meaning with Wait %v", o.Wait)
		}
	} else {
		if o.BusyPoll == 0 {
			o.BusyPoll = DefaultBusyPoll
		}
		if o.BusyPollBudget == 0 {
			o.BusyPollBudget = 64
		}
		if o.BusyPoll < time.Microsecond || o.BusyPoll > time.Second || o.BusyPoll%time.Microsecond != 0 {
			return fmt.Errorf("options: BusyPoll: %v is not a whole number of microseconds within 1us..1s", o.BusyPoll)
		}
		if o.BusyPollBudget < 1 || o.BusyPollBudget > 1<<16-1 {
			return fmt.Errorf("options: BusyPollBudget: %d packets is not within 1..65535", o.BusyPollBudget)
		}
	}
	if o.GRO {
		o.Buffer = 1 << 16 // an aggregate is at most 64 KiB; a smaller buffer would cut it
	}
	return nil
}
