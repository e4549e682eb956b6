// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"bytes"
	"math"
)

// headerEnd ends an HTTP header (RFC 9112, section 2.1).
func headerEnd(b []byte) int {
	if n := len(b); n >= 4 && b[n-1] == '\n' && b[n-2] == '\r' && b[n-3] == '\n' && b[n-4] == '\r' && b[0] == 'G' {
		return n // the common case: a GET, all of it header
	}
	i := bytes.Index(b, []byte("\r\n\r\n"))
	if i < 0 {
		return -1
	}
	return i + 4
}

// completeRequest tells whether b is one whole request: its header, and a body of the length it says.
func completeRequest(b []byte) bool {
	n := headerEnd(b)
	if n < 0 {
		return false
	}
	if b[0] == 'G' || b[0] == 'H' {
		return n == len(b)
	}
	length, ok := contentLength(b[:n])
	return ok && uint64(len(b)-n) == uint64(length)
}

// parseResponse reads a response's header, which must lie in one segment: what follows it, and the length of the body. A
// status other than 2xx, and a body whose length is not told, are not ok.
func parseResponse(b []byte) (body []byte, length uint32, ok bool) {
	n := headerEnd(b)
	if n < 0 || len(b) < 12 || string(b[:7]) != "HTTP/1." || b[9] != '2' {
		return nil, 0, false
	}
	if b[10] == '0' && b[11] == '4' { // No Content
		return b[n:], 0, true
	}
	length, ok = contentLength(b[:n])
	return b[n:], length, ok
}

// contentLength finds the field in a header.
func contentLength(h []byte) (uint32, bool) {
	const name = "content-length:"
	for {
		i := bytes.IndexByte(h, '\n')
		if i < 0 {
			return 0, false
		}
		h = h[i+1:]
		if len(h) < len(name) || !equalFold(h[:len(name)], name) {
			continue
		}
		return number(h[len(name):])
	}
}

func equalFold(b []byte, lower string) bool {
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// number reads digits between blanks up to the end of the line.
func number(b []byte) (uint32, bool) {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	n, digits := uint64(0), 0
	for ; digits < len(b) && b[digits] >= '0' && b[digits] <= '9'; digits++ {
		if n = n*10 + uint64(b[digits]-'0'); n > math.MaxUint32 {
			return 0, false
		}
	}
	b = b[digits:]
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t') {
		b = b[1:]
	}
	return uint32(n), digits > 0 && len(b) > 0 && b[0] == '\r'
}
