// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/LEDGER.md anew")

const ledgerDoc = "../../docs/LEDGER.md"

// TestLedgerDocument keeps docs/LEDGER.md in step with Rows. After a change: go test ./internal/measure -run LedgerDocument -update
func TestLedgerDocument(t *testing.T) {
	want := renderLedgerDoc()
	if *update {
		if err := os.MkdirAll("../../docs", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(ledgerDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(ledgerDoc)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is out of step with measure.Rows: run this test with -update", ledgerDoc)
	}
}

func renderLedgerDoc() string {
	var b strings.Builder
	b.WriteString(`<!-- Made from internal/measure/ledgerrows.go by its test with -update. Do not edit. -->
# The loss ledger

Every packet that was sent and not received is in exactly one row of a trial's ledger, or in ` + "`unexplained`" + `:

    lost = sent - received (different sequence numbers of this run)
    sum(ledger) + unexplained = lost

The rows below are in path order: sender, wire and device, XDP and AF_XDP, stack, socket, reader. Ids are stable. Rows
without packets are left out of a record.

**How rows get their packets.** Each row has one witness, a counter read before the first and after the last packet.
Witnesses that count only this run's packets (its sockets, rings and programs) claim first, in path order. Witnesses
that count a whole namespace, device or host claim from what is left, in path order too, and last ` + "`link.rx_dropped` and\n`xdp.not_ours`" + `, which move on any live link; so other traffic can never take loss away from a witness that knows
better. A claim is cut to the loss that is left: no row and no remainder is ever negative. When witnesses exceed the
loss, a cross-check in the record fails and says by how much.

**Grades.** ` + "`exact`" + `: the witness counts single packets, only this run's, and was not cut. ` + "`bounded`" + `: it counts other traffic
too, or merged packets, or was cut. A witness that counts other traffic is still graded exact when the whole account
closes to the packet, for then nothing else was counted.

**Echo tests** have the rows twice: as they are on the way of the requests, and with ` + "`reply.`" + ` before the id on the way of the
answers, where sender and receiver have changed places. A request whose answer was lost is lost.
**Datagrams in fragments** (the test ` + "`fragments`" + `): packets are datagrams then, and all rows above ` + "`fragments.missing`" + ` count
the frames that carried their fragments. One lost fragment loses a datagram, and several may lose the same, so these rows
claim last, and are bounded when they count more than was left.

**Counters that are not added**, because they show a packet that another row already has:

| counter | is already in |
|---|---|
| XSK rx_fill_ring_empty_descs (copy mode) | XSK rx_dropped; in zero-copy it counts attempts, not packets |
| veth rx_queue_N_drops | XSK rx_dropped + rx_ring_full; only what is beyond them is a row |
| rtnl rx_dropped of a veth | the sender's xdp_xmit_errors + the receiver's rx_queue_N_drops |
| rtnl tx_dropped of a veth | xdp_xmit_errors; only what is beyond them is a row |
| Udp RcvbufErrors, /proc/net/udp drops, SO_RXQ_OVFL | SO_MEMINFO drops |
| Udp InErrors | RcvbufErrors + MemErrors + InCsumErrors + other errors |
| Ip and Udp counters with an AF_PACKET reader | nothing: a tap copies, so the stack counts packets that did arrive |

| id | what happened | witness | grade | what it tells |
|---|---|---|---|---|
`)
	table := func(rows []Row) {
		for _, r := range rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.What, r.Witness, r.Grade, r.Hint)
		}
	}
	table(Rows())
	b.WriteString(`
Tests that open connections (` + "`http-cps`, `http-rps`" + `) count connections where the others count packets, and have these rows:

| id | what happened | witness | grade | what it tells |
|---|---|---|---|---|
`)
	table(ConnectionRows())
	return b.String()
}
