// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
)

// Queues are sockets on several queues of one device over one UMEM, each with its own frames and rings, so that each may have its own goroutine.
type Queues struct {
	Sockets []*Socket // in the order of the queues given to OpenQueues
	umem    *UMEM
}

// OpenQueues opens a socket on each of the given queues as Open does; o.Queue and o.UMEM must be zero.
func OpenQueues(o Options, queues ...int) (q *Queues, err error) {
	if o.UMEM != nil || o.Queue != 0 {
		return nil, &OptionError{"Queue", o.Queue, "and UMEM must be left out: OpenQueues sets them"}
	}
	if len(queues) == 0 {
		return nil, &OptionError{"queues", queues, "must name a queue"}
	}
	full, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	q = &Queues{}
	defer func() {
		if err != nil {
			err = errors.Join(err, q.Close())
			q = nil
		}
	}()
	q.umem, err = NewUMEM(UMEMOptions{Frames: len(queues) * (full.RxFrames + full.TxFrames), ChunkSize: o.ChunkSize, Headroom: o.Headroom, HugePages: o.HugePages})
	if err != nil {
		return q, err
	}
	o.UMEM, o.ChunkSize, o.Headroom, o.HugePages = q.umem, 0, 0, HugeAuto
	for _, o.Queue = range queues {
		s, err := Open(o)
		if err != nil {
			return q, err
		}
		q.Sockets = append(q.Sockets, s)
	}
	return q, nil
}

// Close closes all sockets and the UMEM. Closing twice is no error.
func (q *Queues) Close() error {
	var errs []error
	for _, s := range q.Sockets {
		if err := s.Close(); err != nil {
			errs = append(errs, fmt.Errorf("queue %d: %w", s.mode.Queue, err))
		}
	}
	if q.umem != nil {
		errs = append(errs, q.umem.Close())
	}
	return errors.Join(errs...)
}
