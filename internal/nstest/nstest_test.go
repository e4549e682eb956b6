// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"net"
	"testing"
	"time"
)

func TestPairCarriesUDP(t *testing.T) {
	p := NewPair(t, Options{Queues: 2})
	var srv net.PacketConn
	var err error
	p.SUT.Do(t, func() { srv, err = net.ListenPacket("udp", "198.18.0.1:9000") })
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	p.Peer.Do(t, func() {
		c, err := net.Dial("udp", "198.18.0.1:9000")
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Error(err)
		}
	})
	b := make([]byte, 16)
	srv.SetReadDeadline(time.Now().Add(2 * time.Second))
	n, from, err := srv.ReadFrom(b)
	if err != nil || string(b[:n]) != "hello" {
		t.Fatalf("got %q from %v, %v", b[:n], from, err)
	}
}
