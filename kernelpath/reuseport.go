// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
)

// OpenReuseport opens n receivers on one address, one per worker thread; the kernel gives each flow to one of them by a
// hash of its addresses and ports (socket(7), SO_REUSEPORT). One flow therefore keeps one worker busy however many there
// are, and few flows spread unevenly: compare each receiver's sock.received.
func OpenReuseport(o RecvmmsgOptions, n int) (rs []*Recvmmsg, err error) {
	if n < 1 {
		return nil, fmt.Errorf("options: workers: %d is less than 1", n)
	}
	o.ReusePort = true
	defer func() {
		if err == nil {
			return
		}
		for _, r := range rs {
			err = errors.Join(err, r.Close())
		}
		rs = nil
	}()
	for range n {
		r, err := OpenRecvmmsg(o)
		if err != nil {
			return rs, err
		}
		rs = append(rs, r)
		o.Local = netip.AddrPortFrom(o.Local.Addr(), r.s.local.Port()) // the others follow where the first asked for any port
	}
	return rs, nil
}
