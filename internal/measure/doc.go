// SPDX-License-Identifier: Apache-2.0

// Package measure turns what the kernel, the devices and the readers count into statements about one trial: which
// sequence numbers arrived (Window), how late (Histogram), what it cost (CPUCost, SpinMeter) and where every packet
// that did not arrive went (Build, the ledger).
//
// What runs per packet (Ticks, Window.Add, Histogram.Record, SpinMeter.Tick, Work.Do) allocates nothing, takes no
// lock and belongs to one goroutine; results of several workers are merged afterwards.
package measure
