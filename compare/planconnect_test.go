// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"strings"
	"testing"
)

func TestConnectionPlans(t *testing.T) {
	p := DefaultPlan("http-cps")
	p.Complete()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if p.CC != 64 || p.Requests != 1 || p.Body != 1 || p.Placement != PlaceSender || p.Rates[0].Unit != MaxRate {
		t.Errorf("%+v", p)
	}
	p = DefaultPlan("http-rps")
	p.NIC, p.Peer = "a", ":b"
	p.Complete()
	if err := p.Validate(); err != nil || p.Requests != 1000 || p.Placement != "" {
		t.Errorf("%v %+v", err, p)
	}
	for _, c := range []struct{ test, key, value, want string }{
		{"udp-rx", "cc", "5", "opens no connections"}, {"udp-rx", "body", "1", "opens no connections"},
		{"http-cps", "cc", "70000", "1..60000"}, {"http-cps", "requests", "-1", "1..65536"}, {"http-cps", "body", "2G", "not a size"},
		{"http-cps", "queues", "2", "one queue"}, {"http-cps", "ip", "6", "IPv4"}, {"http-cps", "arms", "kernel:recvmmsg", "not an arm of http-cps"},
		{"http-cps", "size", "64", "size"},
	} {
		p := DefaultPlan(c.test)
		err := p.Set(c.key, c.value)
		if err == nil {
			p.Complete()
			err = p.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s --%s %s: %v, want %q", c.test, c.key, c.value, err, c.want)
		}
	}
}
