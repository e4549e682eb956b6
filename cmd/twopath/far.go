// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"

	"twopath/internal/agent"
	"twopath/internal/host"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// place gets a port of this host ready for a controller on another: test addresses are added, and taken away again when
// the agent leaves.
func place(p agent.Place) (agent.Placed, io.Closer, error) {
	r, err := rig.NewRemote(rig.RemoteOptions{IF: p.Device, Peer: true, PeerMAC: p.Neighbour, Protect: sshClient()})
	if err != nil {
		return agent.Placed{}, nil, err
	}
	cpus, err := host.AllowedCPUs()
	if err != nil {
		return agent.Placed{}, nil, errors.Join(err, r.Close())
	}
	return agent.Placed{Device: r.Peer.Name, MAC: r.Peer.MAC.String(), CPUs: cpus}, r, nil
}

// far is the peer on another host: an agent there that holds the port while trials come and go.
type far struct {
	*trial.Far
	holder *agent.Process
}

// reach starts an agent on host through ssh, which already knows who may log in, and has it hold the port.
func reach(ctx context.Context, host, device string, neighbour net.HardwareAddr) (*far, error) {
	command := func() *exec.Cmd {
		return exec.Command("ssh", "-o", "BatchMode=yes", host, "sudo", "-n", "twopath", "agent")
	}
	cure := fmt.Sprintf("twopath must be installed on %s, and `ssh %s sudo -n twopath version` work without a password", host, host)
	p, err := agent.Launch("peer agent on "+host, command(), (*exec.Cmd).Start)
	if err != nil {
		return nil, fail(exitMachine, "%w; %s", err, cure)
	}
	if _, err := p.Hello(ctx); err != nil {
		return nil, fail(exitMachine, "%w; %s", errors.Join(err, p.Kill()), cure)
	}
	got, err := p.Place(ctx, agent.Place{Device: device, Neighbour: neighbour.String()})
	if err != nil {
		return nil, fail(exitMachine, "%w", errors.Join(err, p.Close()))
	}
	mac, err := net.ParseMAC(got.MAC)
	if err != nil || len(got.CPUs) == 0 {
		return nil, errors.Join(fmt.Errorf("port of %s: MAC %q, CPUs %v", host, got.MAC, got.CPUs), err, p.Close())
	}
	// The last CPU, far from where interrupts and housekeeping tend to be.
	return &far{&trial.Far{Device: got.Device, MAC: mac, CPUs: got.CPUs[len(got.CPUs)-1:], Command: command}, p}, nil
}

// splitPeer takes --peer apart: ":IF" is a port of this host, "[USER@]HOST:IF" one of another. IPv6 addresses of hosts are
// written in brackets.
func splitPeer(peer string) (host, device string, err error) {
	i := strings.LastIndex(peer, ":")
	if i < 0 || i == len(peer)-1 {
		return "", "", fail(exitUsage, "--peer %q: no interface; as in :enp3s0f1, or HOST:enp3s0", peer)
	}
	host = strings.TrimSuffix(strings.Replace(peer[:i], "[", "", 1), "]")
	if strings.HasPrefix(host, "-") {
		return "", "", fail(exitUsage, "--peer %q: a host's name does not begin with a dash", peer)
	}
	return host, peer[i+1:], nil
}

// close gives the other host's port back. A nil far has none.
func (f *far) close() error {
	if f == nil {
		return nil
	}
	return f.holder.Close()
}
