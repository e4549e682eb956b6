// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/netip"

	"twopath/internal/agent"
	"twopath/kernelpath"
)

// kernelServer fits the kernel's TCP server to the loop.
type kernelServer struct{ *kernelpath.TCPServer }

// serveWait bounds one wait in ms, so that the end of a trial is seen.
const serveWait = 10

func (k kernelServer) Serve(int64) error { return k.Turn(serveWait) }

func (k kernelServer) connected() agent.Connected { return kernelConnected(k.Counts()) }

// kernelDialer fits the kernel's TCP client to the loop.
type kernelDialer struct {
	*kernelpath.TCPClient
	expired int64
}

func (k *kernelDialer) Turn(now int64, idle bool) error {
	if now-k.expired > 1e9 {
		k.Expire(now)
		k.expired = now
	}
	ms := 0
	if idle {
		ms = 1
	}
	return k.TCPClient.Turn(now, ms)
}

func (k *kernelDialer) Opened() uint64 { return k.Counts().Opened }

func (k *kernelDialer) Over() uint64 {
	n := k.Counts()
	return n.Completed + n.Errors()
}

func (k *kernelDialer) connected() agent.Connected { return kernelConnected(k.Counts()) }

func kernelConnected(n kernelpath.TCPCounts) agent.Connected {
	return agent.Connected{Opened: n.Opened, Established: n.Established, Completed: n.Completed, Open: n.Open, Skipped: n.Skipped,
		Requests: n.Requests, Responses: n.Responses, BytesIn: n.BytesIn, BytesOut: n.BytesOut,
		Errors: map[string]uint64{"refused": n.Refused, "reset": n.Reset, "timed_out": n.TimedOut, "response_timeout": n.ResponseTimeout,
			"bad_response": n.BadResponse, "early_close": n.EarlyClose, "other": n.Other},
		Counters: map[string]uint64{"syscalls.epoll_wait": n.EpollWaits, "syscalls.accept": n.Accepts, "syscalls.read": n.Reads,
			"syscalls.write": n.Writes, "syscalls.connect": n.Connects, "syscalls.close": n.Closes}}
}

func openKernelServers(p agent.Prepare, n int) (out []tcpWorker, err error) {
	request, response := messages(p.Connect.Body, p.Connect.Keep)
	for range n {
		s, err := kernelpath.OpenTCPServer(kernelpath.TCPServerOptions{HTTP: true, Local: netip.AddrPortFrom(p.Flow.Dst, p.Connect.ServerPort),
			Messages: kernelpath.Messages{Request: request, Response: response, Keep: p.Connect.Keep}})
		if err != nil {
			return out, err
		}
		out = append(out, kernelServer{s})
	}
	return out, nil
}

func openKernelDialers(p agent.Prepare, n int) (out []tcpWorker, err error) {
	request, response := messages(p.Connect.Body, p.Connect.Keep)
	for range n {
		c, err := kernelpath.OpenTCPClient(kernelpath.TCPClientOptions{Remote: netip.AddrPortFrom(p.Flow.Dst, p.Connect.ServerPort), Local: p.Flow.Src,
			Requests: p.Connect.Requests, MaxOpen: max(p.Connect.Concurrent/n, 1),
			Messages: kernelpath.Messages{Request: request, Response: response, Keep: p.Connect.Keep}})
		if err != nil {
			return out, err
		}
		out = append(out, &kernelDialer{TCPClient: c})
	}
	return out, nil
}
