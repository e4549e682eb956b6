// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"testing"
)

func checks() []Check {
	return []Check{
		{ID: "kernel.version", Status: Pass, What: "Linux 6.18", Why: "live frames need 5.18"},
		{ID: "cpu.count", Status: Warn, What: "2 CPUs", Why: "one core is the wire, the other carries NAPI and reader, which hurts the kernel path most", Cure: "use a machine with 3 CPUs or more"},
		{ID: "cap.net_admin", Status: Fail, What: "CAP_NET_ADMIN is missing", Why: "no veth pair, no XDP program", Cure: "sudo twopath demo"},
		{ID: "nic.zerocopy", Status: Skip, What: "no NIC named", Cure: "twopath doctor IF"},
	}
}

func TestDoctorGolden(t *testing.T) {
	var b bytes.Buffer
	if err := DoctorText(&b, checks(), TextOptions{Width: 80}); err != nil {
		t.Fatal(err)
	}
	golden(t, "doctor", b.Bytes())
}

func TestDoctorSummary(t *testing.T) {
	s := SummarizeChecks(checks())
	if want := (DoctorSummary{Pass: 1, Warn: 1, Fail: 1, Skip: 1}); s != want || s.Able() {
		t.Errorf("%+v, able %v", s, s.Able())
	}
	if s := SummarizeChecks([]Check{{ID: "x", Status: "pass?"}}); s.Fail != 1 || s.Able() {
		t.Errorf("an unknown status passed: %+v", s)
	}
	if s := SummarizeChecks(nil); !s.Able() {
		t.Error("no checks, yet not able")
	}
}

func TestDoctorJSON(t *testing.T) {
	var b bytes.Buffer
	if err := DoctorJSON(&b, checks()); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Schema  string
		Checks  []Check
		Summary DoctorSummary
		Able    *bool
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Schema != "twopath/doctor/v1" || len(back.Checks) != 4 || back.Checks[2].Cure != "sudo twopath demo" || back.Able == nil || *back.Able {
		t.Errorf("read back: %+v", back)
	}
}
