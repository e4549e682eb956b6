// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"
)

// answering is what both responders with messages of their own have.
type answering interface {
	Receive([][]byte) (int, error)
	Room(int) []byte
	Answer(which, lengths []int) (int, error)
	Release() error
	Close() error
}

// Each sender gets the answer to its own request, however requests of several share a batch, and those without one get none.
func TestAnswersGoToTheirSenders(t *testing.T) {
	for name, open := range map[string]func(Socket) (answering, error){
		"epoll":    func(s Socket) (answering, error) { s.Batch = 1; return OpenEpollAnswer(EpollOptions{Socket: s}) },
		"recvmmsg": func(s Socket) (answering, error) { return OpenRecvmmsgAnswer(RecvmmsgOptions{Socket: s}) },
	} {
		for _, local := range []string{"127.0.0.1", "::1"} {
			t.Run(name+"/"+local, func(t *testing.T) {
				to := freePort(t, local)
				r, err := open(Socket{Local: to, Timeout: 50 * time.Millisecond})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				var clients []*net.UDPConn
				for i := range 5 {
					c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to))
					if err != nil {
						t.Fatal(err)
					}
					defer c.Close()
					clients = append(clients, c)
					if _, err := fmt.Fprintf(c, "request %d", i); err != nil {
						t.Fatal(err)
					}
				}
				b, seen := make([][]byte, 8), 0
				for deadline := time.Now().Add(5 * time.Second); seen < len(clients) && time.Now().Before(deadline); {
					n, err := r.Receive(b)
					if err != nil {
						t.Fatal(err)
					}
					var which, lengths []int
					for i, m := range b[:n] {
						if seen++; bytes.HasSuffix(m, []byte("3")) {
							continue
						}
						lengths = append(lengths, copy(r.Room(len(which)), "answer to "+string(m)))
						which = append(which, i)
					}
					if len(which) > 0 {
						if sent, err := r.Answer(which, lengths); err != nil || sent != len(which) {
							t.Fatalf("sent %d of %d, %v", sent, len(which), err)
						}
					}
					if err := r.Release(); err != nil {
						t.Fatal(err)
					}
				}
				for i, c := range clients {
					got, wait := make([]byte, 100), 5*time.Second
					if i == 3 {
						wait = 20 * time.Millisecond
					}
					_ = c.SetReadDeadline(time.Now().Add(wait))
					n, err := c.Read(got)
					if want := fmt.Sprintf("answer to request %d", i); i != 3 && (err != nil || string(got[:n]) != want) {
						t.Errorf("client %d got %q, %v", i, got[:n], err)
					}
					if i == 3 && err == nil {
						t.Errorf("client 3 got %q, and no answer was due", got[:n])
					}
				}
			})
		}
	}
}

// freePort is a UDP port of the loopback that nobody has.
func freePort(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Skipf("no loopback %s here: %v", address, err)
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort()
}
