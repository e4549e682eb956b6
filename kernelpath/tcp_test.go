// SPDX-License-Identifier: Apache-2.0

package kernelpath_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"twopath/kernelpath"
)

// The TCP tests need no privileges: they talk over the loopback device, on ports of the kernel's choice.

func freePort(t testing.TB) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return netip.MustParseAddrPort(l.Addr().String())
}

func httpMessages(body int, keep bool) kernelpath.Messages {
	connection := "close"
	if keep {
		connection = "keep-alive"
	}
	m := kernelpath.Messages{Keep: keep, Request: []byte("GET / HTTP/1.1\r\nHost: twopath\r\nConnection: " + connection + "\r\n\r\n")}
	m.Response = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n", body, connection)
	m.Response = append(m.Response, bytes.Repeat([]byte("twopath."), body/8+1)[:body]...)
	return m
}

// startServer serves until the test ends, and tells then what it did.
func startServer(t testing.TB, o kernelpath.TCPServerOptions) (stop func() kernelpath.TCPCounts) {
	t.Helper()
	s, err := kernelpath.OpenTCPServer(o)
	if err != nil {
		t.Fatal(err)
	}
	var end atomic.Bool
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for !end.Load() {
			if err := s.Turn(100); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	stopped := false
	stop = func() kernelpath.TCPCounts {
		if !stopped {
			stopped = true
			end.Store(true)
			if err := s.Wake(); err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		return s.Counts()
	}
	t.Cleanup(func() { stop() })
	return stop
}

// drive runs a client until count connections are over, open of them at a time.
func drive(t testing.TB, c *kernelpath.TCPClient, count uint64) kernelpath.TCPCounts {
	t.Helper()
	began := time.Now()
	now := func() int64 { return int64(time.Since(began)) }
	for n := c.Counts(); n.Completed+n.Errors() < count; n = c.Counts() {
		for c.Counts().Opened < count && c.Open(now(), now()) {
		}
		if err := c.Turn(now(), 100); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > 30*time.Second {
			t.Fatalf("%+v", c.Counts())
		}
	}
	return c.Counts()
}

func TestTCP(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for _, body := range []int{1, 1000, 3 << 20} {
			t.Run(fmt.Sprintf("keep %v body %d", keep, body), func(t *testing.T) {
				m := httpMessages(body, keep)
				at := freePort(t)
				stop := startServer(t, kernelpath.TCPServerOptions{Messages: m, Local: at, HTTP: true})
				count, requests := uint64(500), 1
				if body > 1000 {
					count = 10
				}
				if keep {
					requests = 7
				}
				o := kernelpath.TCPClientOptions{Messages: m, Remote: at, Requests: requests, MaxOpen: 50}
				c, err := kernelpath.OpenTCPClient(o)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				n := drive(t, c, count)
				want := count * uint64(requests)
				if n.Opened != count || n.Completed != count || n.Responses != want || n.Requests != want || n.Errors() != 0 || n.Open != 0 || n.BytesIn != want*uint64(len(m.Response)) {
					t.Errorf("client %+v", n)
				}
				time.Sleep(100 * time.Millisecond) // the server sees the last FIN a moment later
				if s := stop(); s.Completed != count || s.Responses != want || s.Errors() != 0 || s.Open != 0 {
					t.Errorf("server %+v", s)
				}
			})
		}
	}
}

// A real client gets what it asked for.
func TestTCPServerTalksToStrangers(t *testing.T) {
	m := httpMessages(100_000, true)
	at := freePort(t)
	startServer(t, kernelpath.TCPServerOptions{Messages: m, Local: at, HTTP: true})
	for range 3 {
		r, err := http.Get("http://" + at.String() + "/any")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 || !bytes.HasSuffix(m.Response, body) || len(body) != 100_000 {
			t.Fatalf("status %d, %d bytes, %v", r.StatusCode, len(body), err)
		}
		r.Body.Close()
	}
}

func TestTCPRefused(t *testing.T) {
	c, err := kernelpath.OpenTCPClient(kernelpath.TCPClientOptions{Messages: httpMessages(1, false), Remote: freePort(t), MaxOpen: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := drive(t, c, 20); n.Refused != 20 || n.Completed != 0 || n.Open != 0 {
		t.Errorf("%+v", n)
	}
}

// A server that says something else, closes early, or says nothing: each is counted as what it is.
func TestTCPWrongAnswers(t *testing.T) {
	m := httpMessages(10, false)
	for name, c := range map[string]struct {
		answer []byte
		hold   bool
		count  func(kernelpath.TCPCounts) uint64
	}{
		"wrong body": {bytes.Replace(m.Response, []byte("two"), []byte("one"), 1), false, func(n kernelpath.TCPCounts) uint64 { return n.BadResponse }},
		"cut":        {m.Response[:len(m.Response)-1], false, func(n kernelpath.TCPCounts) uint64 { return n.EarlyClose }},
		"silence":    {nil, true, func(n kernelpath.TCPCounts) uint64 { return n.ResponseTimeout }},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				for {
					k, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer k.Close()
						b := make([]byte, 1000)
						if _, err := k.Read(b); err != nil {
							return
						}
						if c.hold {
							k.Read(b)
							return
						}
						k.Write(c.answer)
					}()
				}
			}()
			o := kernelpath.TCPClientOptions{Messages: m, Remote: netip.MustParseAddrPort(l.Addr().String()), MaxOpen: 3, ResponseTimeout: 1e6}
			k, err := kernelpath.OpenTCPClient(o)
			if err != nil {
				t.Fatal(err)
			}
			defer k.Close()
			for i := range int64(3) {
				if !k.Open(i, i) {
					t.Fatal("not opened")
				}
			}
			for end := time.Now().Add(5 * time.Second); k.Counts().Open > 0 && time.Now().Before(end); {
				if err := k.Turn(1e6, 50); err != nil {
					t.Fatal(err)
				}
				if c.hold && k.Counts().Requests == 3 {
					k.Expire(10e6)
				}
			}
			if n := k.Counts(); c.count(n) != 3 || n.Errors() != 3 || n.Open != 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

func BenchmarkTCPConnections(b *testing.B) {
	m := httpMessages(1, false)
	at := freePort(b)
	startServer(b, kernelpath.TCPServerOptions{Messages: m, Local: at, HTTP: true})
	c, err := kernelpath.OpenTCPClient(kernelpath.TCPClientOptions{Messages: m, Remote: at, MaxOpen: 64})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.ReportAllocs()
	b.ResetTimer()
	drive(b, c, uint64(b.N))
}
