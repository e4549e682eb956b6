// SPDX-License-Identifier: Apache-2.0

package compare

// TestInfo describes a kind of traffic.
type TestInfo struct {
	Name  string
	About string
}

// Tests are the tests a plan may name.
func Tests() []TestInfo {
	return []TestInfo{
		{Name: "udp-rx", About: "the peer sends UDP datagrams, the SUT receives them"},
	}
}

// LookupTest finds a test by name.
func LookupTest(name string) (TestInfo, bool) {
	for _, t := range Tests() {
		if t.Name == name {
			return t, true
		}
	}
	return TestInfo{}, false
}

func testNames() []string {
	var names []string
	for _, t := range Tests() {
		names = append(names, t.Name)
	}
	return names
}
