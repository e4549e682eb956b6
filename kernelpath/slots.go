// SPDX-License-Identifier: Apache-2.0

package kernelpath

// A slot is one receive buffer. The distance between slots is one cache line more than their size: headers of buffers
// that are a power of two apart would all fall into the same few sets of the first-level cache.
const cacheLine = 64

// slots cuts n buffers of size bytes from one piece of memory.
func slots(n, size int) [][]byte {
	stride := (size+cacheLine-1)/cacheLine*cacheLine + cacheLine
	memory := make([]byte, n*stride)
	s := make([][]byte, n)
	for i := range s {
		s[i] = memory[i*stride : i*stride+size : i*stride+size]
	}
	return s
}
