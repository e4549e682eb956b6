// SPDX-License-Identifier: Apache-2.0

package measure

// ConnectionRows lists the ledger rows of tests that open connections: where those went that did not end as planned. The
// client counts each in exactly one, so all are exact.
func ConnectionRows() []Row {
	const client = "client: how the connection ended"
	row := func(id, what, hint string) Row {
		return Row{ID: id, What: what, Witness: client, Grade: gradeExact, Hint: hint}
	}
	return []Row{
		row("tcp.refused", "an RST answered its SYN", "nobody listens on the port, or the backlog is full"),
		row("tcp.reset", "an RST ended it after it was open", "the server gave it up"),
		row("tcp.timed_out", "a segment was sent again to no end", "loss on the way, or a peer that is gone"),
		row("tcp.response_timeout", "its request was acknowledged and never answered", "the server is overloaded, or broken"),
		row("tcp.bad_response", "the response is not what was due, to the byte", "a fault of the server"),
		row("tcp.early_close", "the server closed it before the response was whole", "a fault of the server"),
		row("tcp.idle", "nothing came on it for the idle time", "the other end is gone"),
		row("tcp.other", "its socket ended with another error", "see the record's counters"),
		row("tcp.unfinished", "it was open when the wait for the last ones was over", "a server slower than the wait: fewer at a time (--cc)"),
	}
}
