// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"twopath/compare"
	"twopath/internal/knob"
	"twopath/internal/rig"
)

func (a *app) rigCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "rig",
		Short: "Keep the veth rig to explore: two namespaces and a cable",
		Long: `rig up makes the rig that the other verbs make for themselves, and leaves it: two network namespaces, twopath-sut and
twopath-peer, joined by a veth cable with test addresses (198.18.0.0/24, 2001:2::/64). rig down removes it.`,
		Example: `  sudo twopath rig up
  sudo ip netns exec twopath-peer ping -c 3 198.18.0.1
  sudo twopath rig down`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return compare.Unknown("rig verb", args[0], "no such verb", []string{"up", "down", "status"})
		},
		RunE: func(c *cobra.Command, _ []string) error { return a.rigStatus() },
	}
	var queues, mtu int
	up := &cobra.Command{Use: "up", Short: "Make the rig and leave it", Example: "  sudo twopath rig up --queues 2", Args: exactly(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return a.rigUp(rig.Options{Queues: queues, MTU: mtu}) }}
	up.Flags().IntVar(&queues, "queues", 1, "receive and transmit queues of each end")
	up.Flags().IntVar(&mtu, "mtu", 1500, "MTU in bytes")
	down := &cobra.Command{Use: "down", Short: "Remove it", Example: "  sudo twopath rig down", Args: exactly(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return a.rigDown() }}
	status := &cobra.Command{Use: "status", Short: "Tell whether it is there", Example: "  twopath rig status", Args: exactly(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error { return a.rigStatus() }}
	c.AddCommand(up, down, status)
	return c
}

func (a *app) rigUp(o rig.Options) error {
	r, err := rig.Up(rig.UpOptions{Options: o})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s: %s %s %s %s\n%s: %s %s %s %s\nlook around: ip netns exec %s bash; remove it: twopath rig down\n",
		rig.SUTNamespace, r.SUT.Name, r.SUT.MAC, r.SUT.IPv4, r.SUT.IPv6, rig.PeerNamespace, r.Peer.Name, r.Peer.MAC, r.Peer.IPv4, r.Peer.IPv6, rig.SUTNamespace)
	return r.Close()
}

func (a *app) rigDown() error {
	removed, err := rig.Down("")
	if err != nil {
		return err
	}
	if !removed {
		fmt.Fprintln(a.stderr, "twopath: there is no rig to remove")
		return nil
	}
	fmt.Fprintln(a.stdout, "the rig is removed")
	return nil
}

func (a *app) rigStatus() error {
	l, err := rig.Status("")
	if err != nil {
		return err
	}
	if l == nil {
		fmt.Fprintln(a.stdout, "there is no rig; make one: twopath rig up")
		return nil
	}
	fmt.Fprintf(a.stdout, "the rig is up: namespaces %s; remove it: twopath rig down\n", strings.Join(l.Namespaces, " and "))
	return nil
}

// recoverLeftovers undoes what runs that were killed have left, and says so.
func (a *app) recoverLeftovers() error {
	undone, err := rig.Recover("")
	for _, l := range undone {
		fmt.Fprintf(a.stderr, "twopath: put back what process %d has left: %s\n", l.PID, strings.Join(append(l.Devices, l.Namespaces...), ", "))
	}
	var r *rig.Refusal
	if errors.As(err, &r) && r.ID == "privilege" {
		return nil // whoever may not recover will be told by what comes next
	}
	if err != nil {
		return err
	}
	knobs, pid, err := knob.Recover("") // after the ports are home
	if len(knobs) > 0 {
		fmt.Fprintf(a.stderr, "twopath: put back what process %d has left set: %s\n", pid, undoneText(knobs))
	}
	if errors.Is(err, os.ErrPermission) {
		return nil
	}
	return err
}

// undoneText lists settings that were put back, or why they were not.
func undoneText(list []knob.Undone) string {
	var parts []string
	for _, u := range list {
		if u.Left != "" {
			parts = append(parts, fmt.Sprintf("%s not: %s", u.Knob, u.Left))
			continue
		}
		parts = append(parts, u.Knob+" to "+u.Before)
	}
	return strings.Join(parts, ", ")
}
