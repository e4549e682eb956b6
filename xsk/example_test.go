// SPDX-License-Identifier: Apache-2.0

package xsk_test

import (
	"fmt"
	"log"

	"twopath/xsk"
)

// receive prints what arrives on queue 0, until another goroutine calls Wake on the socket. addToMap puts the socket into the XSKMAP
// of the XDP program that the caller has attached to the device.
func receive(device string, addToMap func(queue, fd int) error) error {
	s, err := xsk.Open(xsk.Options{Device: device, TxRing: xsk.None, Wait: xsk.Poll})
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

// A receiver in 25 lines.
func Example() {
	addToMap := func(queue, fd int) error { return nil } // for instance cilium/ebpf: xskMap.Put(uint32(queue), uint32(fd))
	if err := receive("eth0", addToMap); err != nil {
		log.Fatal(err)
	}
}
