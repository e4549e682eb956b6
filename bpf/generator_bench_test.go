// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"runtime"
	"testing"

	"twopath/internal/nstest"
)

// What one core can offer; the other end drops in its driver.
func BenchmarkGenerator(b *testing.B) {
	for _, c := range []struct {
		name  string
		flows int
		sizes []int
	}{{"64", 1, []int{64}}, {"64 flows", 64, []int{64}}, {"imix", 1, Imix()}} {
		b.Run(c.name, func(b *testing.B) {
			p := nstest.NewPair(b, nstest.Options{})
			match := frame4().match()
			match.SrcPorts = c.flows
			d, err := NewDrop(DropOptions{Match: match})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			p.SUT.Do(b, func() {
				l, err := Attach(d.Program(), p.SUT.Index, Native)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { l.Close() })
			})
			p.Peer.Do(b, func() {
				pin(b, runtime.NumCPU()-1)
				o := pairOptions(p, frame4())
				o.Count, o.Flows, o.Sizes = uint64(b.N), c.flows, c.sizes
				g, err := NewGenerator(o)
				if err != nil {
					b.Fatal(err)
				}
				defer g.Close()
				b.ResetTimer()
				res, err := g.Run()
				b.StopTimer()
				if err != nil || res.Sent != uint64(b.N) {
					b.Fatalf("%+v, %v", res, err)
				}
				b.ReportMetric(res.Rate()/1e6, "Mpps")
				b.ReportMetric(0, "ns/op") // it would include some 30 ms of set-up
			})
		})
	}
}
