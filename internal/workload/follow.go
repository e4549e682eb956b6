// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"twopath/internal/flows"
	"twopath/internal/measure"
	"twopath/internal/packet"
)

// FollowOptions is one worker's part in replay.
type FollowOptions struct {
	Receiver Receiver      // lends Ethernet frames
	Run      uint32        // whose marks the frames have
	Frames   int           // of the list
	Batch    int           // frames a turn; 0 is DefaultBatch
	Spins    bool          // the receiver returns at once when there is nothing
	Work     *measure.Work // application work per frame; nil is none
	Ticks    measure.TickRate
}

// FollowResult is what one worker saw.
type FollowResult struct {
	Turns
	Received  uint64 // frames of the run
	Bytes     uint64 // of these, without FCS
	Foreign   uint64 // frames without the run's mark
	Late      uint64 // of Received, those of a loop that was over: not followed
	Loops     uint64 // of the list, begun; 0 when nothing came
	Sessions  flows.Counts
	Lines     map[string]uint64 // HTTP request lines
	Cold      uint64            // frames of the first loop, and the ticks from lending them to giving them back
	ColdTicks uint64
	Warm      uint64 // frames of all other loops
	WarmTicks uint64
}

// Follow is the replay loop of one worker: take a batch, follow each frame's session, give the memory back. A frame's mark
// says which loop of the list it is of, and every loop has sessions of its own. The kernel may hand frames of two loops in
// another order (GRO holds some back), so that a few loops are kept at a time, each with its table.
// Run belongs to one goroutine; Stop and Live may be called from any.
type Follow struct {
	reading
	o      FollowOptions
	tables []*flows.Table // of loop n: n mod their number
	loops  []uint16       // which loop a table has
	taken  []bool         // it has one
	r      FollowResult
	began  uint64 // ticks when the batch under way was lent, or the first loop ended in it
}

// napiBudget is how many frames NAPI takes at a time (NAPI_POLL_WEIGHT): no frame is held back for longer.
const napiBudget = 64

// NewFollow prepares a worker; all memory of the packet path is allocated here.
func NewFollow(o FollowOptions) (*Follow, error) {
	l := &Follow{o: o}
	if err := l.begin(o.Receiver, o.Batch, o.Spins, o.Ticks); err != nil {
		return nil, fmt.Errorf("follow options: %w", err)
	}
	if o.Frames < 1 {
		return nil, fmt.Errorf("follow options: Frames is %d", o.Frames)
	}
	n := 2 // a power of two, so that the numbers of loops may wrap
	for n < 2+napiBudget/o.Frames {
		n *= 2
	}
	for range n {
		table, err := flows.New(flows.Options{Sessions: min(o.Frames, flows.DefaultSessions)})
		if err != nil {
			return nil, fmt.Errorf("follow options: %w", err)
		}
		l.tables = append(l.tables, table)
	}
	l.loops, l.taken = make([]uint16, n), make([]bool, n)
	return l, nil
}

// Run receives until Stop. The caller has locked the goroutine to a thread and placed it.
func (l *Follow) Run() error { return l.run(l) }

// take follows a batch. Cycles per frame are those from lending a batch to giving it back: the time in which the program has
// the frames, whatever the engine did to bring them and however long it slept before.
func (l *Follow) take(batch [][]byte, _ uint64) (uint64, error) {
	l.began = measure.Ticks()
	for _, f := range batch {
		l.frame(f)
	}
	return l.r.Received, nil
}

func (l *Follow) returned() { l.spend(measure.Ticks() - l.began) }

// frame follows one frame. The clock is read within a batch only where the first loop ends.
func (l *Follow) frame(f []byte) {
	n, ok := packet.Mark(f, l.o.Run)
	if !ok {
		l.r.Foreign++
		return
	}
	i := int(n) & (len(l.tables) - 1)
	if l.loops[i] != n || !l.taken[i] {
		if l.taken[i] && int16(n-l.loops[i]) < 0 { // of a loop that is over: its table is another's
			l.r.Received++
			l.r.Bytes += uint64(len(f))
			l.r.Late++
			return
		}
		if l.r.Loops == 1 {
			now := measure.Ticks()
			l.r.ColdTicks += now - l.began
			l.began = now
		}
		l.r.Loops++
		l.tables[i].NewRound()
		l.loops[i], l.taken[i] = n, true
	}
	l.r.Received++
	l.r.Bytes += uint64(len(f))
	if l.r.Loops == 1 {
		l.r.Cold++
	}
	l.tables[i].Frame(f)
	if l.o.Work != nil {
		l.o.Work.Do()
	}
}

func (l *Follow) spend(ticks uint64) {
	if l.r.Loops > 1 {
		l.r.WarmTicks += ticks
	} else {
		l.r.ColdTicks += ticks
	}
}

// Result is what was seen; call it when Run has returned.
func (l *Follow) Result() FollowResult {
	r := l.r
	r.Warm = r.Received - r.Cold
	r.Lines = map[string]uint64{}
	for _, t := range l.tables {
		r.Sessions.Add(t.Counts())
		for line, n := range t.Lines() {
			r.Lines[line] += n
		}
	}
	r.Turns = l.result()
	return r
}
