// SPDX-License-Identifier: Apache-2.0

package agent

// The roles of dns.
const (
	AnswerDNS Role = "dns-answer" // the SUT: one engine, N workers, each answers queries for a zone
	AskDNS    Role = "dns-ask"    // the peer: queries as XDP live frames, and a program that takes the replies out and checks them
	Dnsperf   Role = "dnsperf"    // the peer: the program of that name
)

// DNS is what both sides of a dns test are told. Files travel as text: the other side may be another host.
type DNS struct {
	Zone    string `json:"zone"`              // master file
	File    string `json:"file"`              // its name, for errors
	Queries string `json:"queries,omitempty"` // in dnsperf's format; "" derives them from the zone
	EDNS    bool   `json:"edns,omitempty"`    // queries carry an OPT record
	// Clients is how many sockets dnsperf asks from, and Outstanding how many queries are out at most.
	Clients     int `json:"clients,omitempty"`
	Outstanding int `json:"outstanding,omitempty"`
	// Wrong makes every k-th answer of a worker wrong, in one way after the other; 0 is never. Tests of the check use it.
	Wrong int `json:"wrong,omitempty"`
}
