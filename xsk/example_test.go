// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"fmt"

	"twopath/xsk"
)

// A receiver, once an XDP program redirects the queue to an XSKMAP. Another goroutine ends it by calling Wake on the socket.
func Example() {
	receive := func(device string, addToMap func(queue, fd int) error) error {
		s, err := xsk.Open(xsk.Options{Device: device, Queue: 0, TxRing: xsk.None, Wait: xsk.Poll})
		if err != nil {
			return err
		}
		defer s.Close()
		if err := addToMap(0, s.FD()); err != nil {
			return err
		}
		descs := make([]xsk.Desc, 64)
		for {
			n := s.Receive(descs)
			for _, d := range descs[:n] {
				fmt.Printf("%d bytes: %x\n", d.Len, s.Frame(d))
			}
			s.Release(descs[:n])
			if n == 0 {
				if event, err := s.Wait(-1); err != nil || event == xsk.Woken {
					return err
				}
			}
		}
	}
	_ = receive
}
