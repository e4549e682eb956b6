// SPDX-License-Identifier: Apache-2.0

package bpf

import "fmt"

// AnswerStats is what an asker saw of the replies to its ports. Received = Right + Unasked + WrongQuestion + WrongCode +
// WrongAnswer + Malformed + CorruptIP + CorruptUDP. A wrong reply uses its request up, so that each has one outcome.
type AnswerStats struct {
	Received, Bytes       uint64     // bytes without FCS
	Right                 uint64     // to the byte what was expected
	Unasked               uint64     // no request was out with this port and id: a second reply, or to another's question
	WrongQuestion         uint64     // repeats another question than was asked
	WrongCode             uint64     // another response code than expected
	WrongAnswer           uint64     // differs elsewhere
	Malformed             uint64     // lengths disagree, or too short for a header
	CorruptIP, CorruptUDP uint64     // checksums
	Partial               uint64     // sound, its UDP checksum left to a device by the sending kernel; in another count too
	Truncated             uint64     // right, and says that it is cut; in Right too
	Codes                 [16]uint64 // replies that were asked for, by response code

	LatencyCount                       uint64 // right replies
	LatencySum, LatencyMin, LatencyMax uint64 // ns, arrival minus the request's intended time, exact
	LatencyOver                        uint64 // above what the histogram can tell, 137 s
	First, Last                        uint64 // CLOCK_MONOTONIC ns of the first and the last reply
}

// Wrong are replies to a request that was out which are not the one expected.
func (s AnswerStats) Wrong() uint64 { return s.WrongQuestion + s.WrongCode + s.WrongAnswer }

// Counters is as Redirect.Counters; replies to the asker's ports are under counted.
func (a *Asker) Counters() (reasons map[string]uint64, perQueue []uint64, err error) {
	reasons, err = readReasons(a.obj.Reasons, redirectReasonREASON_COUNTED)
	if err != nil {
		return nil, nil, err
	}
	perQueue, err = readQueues(a.obj.Queues)
	return reasons, perQueue, err
}

// Replies returns what came back so far, over all CPUs.
func (a *Asker) Replies() (AnswerStats, error) {
	var per []askAnswerStats
	if err := a.obj.Stats.Lookup(uint32(0), &per); err != nil {
		return AnswerStats{}, fmt.Errorf("read asker: %w", err)
	}
	var t AnswerStats
	for i := range per {
		if per[i].Received > 0 {
			t.add(&per[i])
		}
	}
	return t, nil
}

func (t *AnswerStats) add(c *askAnswerStats) {
	if c.LatencyCount > 0 && (t.LatencyCount == 0 || c.LatencyMinNs < t.LatencyMin) {
		t.LatencyMin = c.LatencyMinNs
	}
	if t.First == 0 || c.FirstNs < t.First {
		t.First = c.FirstNs
	}
	t.Last = max(t.Last, c.LastNs)
	t.LatencyMax = max(t.LatencyMax, c.LatencyMaxNs)
	t.LatencySum += c.LatencySumNs
	t.LatencyCount += c.LatencyCount
	t.LatencyOver += c.LatencyOver
	t.Received += c.Received
	t.Bytes += c.Bytes
	t.Right += c.Right
	t.Unasked += c.Unasked
	t.WrongQuestion += c.WrongQuestion
	t.WrongCode += c.WrongCode
	t.WrongAnswer += c.WrongAnswer
	t.Malformed += c.Malformed
	t.CorruptIP += c.CorruptIp
	t.CorruptUDP += c.CorruptUdp
	t.Partial += c.Partial
	t.Truncated += c.Truncated
	for i, n := range c.Codes {
		t.Codes[i] += n
	}
}

// Latencies returns the distribution of the latencies of right answers so far.
func (a *Asker) Latencies() ([]LatencyBucket, error) { return readLatencies(a.obj.Latencies) }
