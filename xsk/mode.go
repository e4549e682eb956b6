// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"time"
)

// Settings is what a socket is like. Where nothing can turn out otherwise, obtained equals requested.
type Settings struct {
	Bind           BindMode   // obtained: Copy or ZeroCopy, read back by getsockopt XDP_OPTIONS
	Attach         AttachMode // as the caller told
	Wait           WaitMode
	BusyPoll       time.Duration // 0 without busy polling
	BusyPollBudget int           // frames; 0 without busy polling
	NeedWakeup     bool
	MultiBuffer    bool
	SharedUMEM     bool      // obtained: the UMEM was another socket's already
	HugePages      HugePages // obtained: HugeRequire if it has them, HugeNever if not
	ChunkSize      int       // bytes
	Headroom       int       // bytes, besides the kernel's 256
	RxRing         int       // slots; None without
	TxRing         int       // slots; None without
	FillRing       int       // slots
	CompletionRing int       // slots
	RxFrames       int
	TxFrames       int
	TxBudget       int // frames per sendto in copy mode; obtained: 32 where the kernel has no option for it
}

// Mode is what was asked for and what the kernel gave.
type Mode struct {
	Device    string
	Ifindex   int
	Queue     int
	Requested Settings // with defaults filled in
	Obtained  Settings
}

// Downgrades names what was asked for and not obtained. It is empty for a wish that leaves the choice to the kernel, such as Auto.
func (m Mode) Downgrades() []string {
	var d []string
	if m.Requested.TxBudget > m.Obtained.TxBudget {
		d = append(d, fmt.Sprintf("TxBudget: asked for %d, got %d", m.Requested.TxBudget, m.Obtained.TxBudget))
	}
	if m.Requested.HugePages == HugeRequire && m.Obtained.HugePages != HugeRequire {
		d = append(d, "HugePages: asked for, got normal pages")
	}
	return d
}

func (m Mode) String() string {
	o := m.Obtained
	s := fmt.Sprintf("%s queue %d: %s (asked %s), %s", m.Device, m.Queue, o.Bind, m.Requested.Bind, o.Wait)
	if o.NeedWakeup {
		s += ", need_wakeup"
	}
	if o.MultiBuffer {
		s += ", multi-buffer"
	}
	if o.SharedUMEM {
		s += ", shared UMEM"
	}
	return s + fmt.Sprintf(", rings rx %d tx %d fill %d completion %d, chunks of %d B", max(o.RxRing, 0), max(o.TxRing, 0), o.FillRing, o.CompletionRing, o.ChunkSize)
}

func settings(o Options, u UMEMOptions) Settings {
	return Settings{Bind: o.Bind, Attach: o.Attach, Wait: o.Wait, BusyPoll: o.BusyPoll, BusyPollBudget: o.BusyPollBudget, NeedWakeup: !o.NoNeedWakeup,
		MultiBuffer: o.MultiBuffer, SharedUMEM: o.UMEM != nil, HugePages: u.HugePages, ChunkSize: u.ChunkSize, Headroom: u.Headroom,
		RxRing: o.RxRing, TxRing: o.TxRing, FillRing: o.FillRing, CompletionRing: o.CompletionRing, RxFrames: o.RxFrames, TxFrames: o.TxFrames, TxBudget: o.TxBudget}
}
