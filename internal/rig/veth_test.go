// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"net"
	"testing"
	"time"

	"twopath/internal/nstest"
)

func newRig(t testing.TB, o Options) *Rig {
	t.Helper()
	nstest.Root(t)
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func TestRigCarriesUDP(t *testing.T) {
	r := newRig(t, Options{Queues: 2})
	for _, dst := range []string{"198.18.0.1:9000", "[2001:2::1]:9000"} {
		var srv net.PacketConn
		if err := r.SUT.Do(func() (err error) { srv, err = net.ListenPacket("udp", dst); return }); err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		err := r.Peer.Do(func() error {
			c, err := net.Dial("udp", dst)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("hello"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 16)
		srv.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, from, err := srv.ReadFrom(b)
		if err != nil || string(b[:n]) != "hello" {
			t.Fatalf("%s: got %q from %v, %v", dst, b[:n], from, err)
		}
	}
}

func TestNAPIPlacementIsReadBack(t *testing.T) {
	for _, queues := range []int{1, 4} {
		r := newRig(t, Options{Queues: queues})
		for _, want := range []NAPIOptions{
			{Threaded: true, CPUs: []int{0}},
			{Threaded: true, CPUs: []int{0, 1}, Policy: FIFO},
			{Threaded: true, CPUs: []int{1}, Policy: FIFO, Priority: 42},
			{Threaded: true, CPUs: []int{1}, Policy: Other},
			{},
			{Threaded: true, CPUs: []int{1, 0}},
		} {
			if err := r.SUT.SetNAPI(want); err != nil {
				t.Fatalf("%d queues, %+v: %v", queues, want, err)
			}
			got, err := r.SUT.NAPI()
			if err != nil || len(got) != queues {
				t.Fatalf("%d queues, %+v: read back %+v, %v", queues, want, got, err)
			}
			t.Logf("%+v -> %+v", want, got)
			if err := r.SUT.VerifyNAPI(want); err != nil {
				t.Errorf("%d queues: %v", queues, err)
			}
		}
	}
}
