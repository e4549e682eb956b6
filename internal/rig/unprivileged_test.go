// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
)

// unprivileged plays a user who has no privileges and says how each attempt was refused.
func unprivileged() {
	say := func(what string, err error) {
		var r *Refusal
		switch {
		case err == nil:
			fmt.Println(what, "none")
		case errors.As(err, &r):
			fmt.Println(what, r.ID, r.Usage)
		default:
			fmt.Println(what, err)
		}
	}
	_, err := New(Options{})
	say("new", err)
	_, err = Up(UpOptions{})
	say("up", err)
	_, err = NewPair(PairOptions{IF: "nic0", PeerIF: "nic1"})
	say("pair", err)
	_, err = NewRemote(RemoteOptions{IF: "nic0"})
	say("remote", err)
	_, err = Recover("")
	say("recover", err)
}
