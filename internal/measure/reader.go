// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"fmt"
	"maps"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ReaderOptions names what to read. The zero value reads the namespace's protocol counters only.
type ReaderOptions struct {
	Device string // interface whose link.*, ethtool.* and qdisc.* are read; "" for none
	// Proc is the proc directory of the task whose namespace is read; "" means /proc/thread-self, which is right for
	// any thread of an agent (all are inside) and for a test's thread that entered a namespace. /proc/net is a link
	// to self/net, and self is the main thread: wrong for the latter.
	Proc string
}

// Reader takes snapshots of the kernel's counters for one device and one network namespace: the one the calling
// thread is in when NewReader and Read are called (lock the goroutine to its thread if namespaces differ by thread).
// One goroutine uses it at a time.
type Reader struct {
	o     ReaderOptions
	nl    *netlink.Handle
	route *nl.SocketHandle
	et    *ethtool.Ethtool
	index int
}

// NewReader opens a netlink and an ethtool socket in the current namespace. Sockets stay in the namespace they were
// opened in, files of Proc follow the task.
func NewReader(o ReaderOptions) (_ *Reader, err error) {
	if o.Proc == "" {
		o.Proc = "/proc/thread-self"
	}
	r := &Reader{o: o}
	if o.Device == "" {
		return r, nil
	}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	if r.nl, err = netlink.NewHandle(); err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	s, err := nl.GetNetlinkSocketAt(netns.None(), netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("open rtnetlink: %w", err)
	}
	r.route = &nl.SocketHandle{Socket: s}
	l, err := r.nl.LinkByName(o.Device)
	if err != nil {
		return nil, fmt.Errorf("find device %s: %w", o.Device, err)
	}
	r.index = l.Attrs().Index
	if r.et, err = ethtool.NewEthtool(); err != nil {
		return nil, fmt.Errorf("open ethtool socket: %w", err)
	}
	return r, nil
}

// Read takes a snapshot. Sources are read one after the other: stop the traffic and let it drain first, or the
// counters belong to different moments. A source that this kernel does not have is left out; one that is there and
// cannot be read is an error, and the snapshot holds the rest.
func (r *Reader) Read() (Snapshot, error) {
	s := Snapshot{At: Monotonic(), Counters: make(map[string]uint64, 1024)}
	var errs []error
	take := func(m map[string]uint64, err error) {
		maps.Copy(s.Counters, m)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if r.o.Device != "" {
		take(r.link())
		take(r.ethtoolStats())
		take(r.qdisc())
	}
	take(readSNMP(r.o.Proc))
	take(readSNMP6(r.o.Proc))
	take(readSoftnet(r.o.Proc))
	take(readStat(r.o.Proc))
	return s, errors.Join(errs...)
}

// Close closes the sockets. It may be called more than once.
func (r *Reader) Close() error {
	if r.nl != nil {
		r.nl.Close()
		r.nl = nil
	}
	if r.route != nil {
		r.route.Socket.Close()
		r.route = nil
	}
	if r.et != nil {
		r.et.Close()
		r.et = nil
	}
	return nil
}
