// SPDX-License-Identifier: Apache-2.0

package flows

import "bytes"

// http counts the request lines (RFC 9112, section 3) in what a segment brings. A request is found where a segment or the
// message before it in the same segment ends; one whose method itself is split over two segments is missed.
func (t *Table) http(b []byte) {
	for len(b) > 0 {
		line, ok := requestLine(b)
		if !ok {
			return
		}
		t.c.Requests++
		t.lines.count(line)
		end := bytes.Index(b, headerEnd[:])
		if end < 0 {
			return
		}
		b = b[end+len(headerEnd):]
	}
}

var headerEnd = [...]byte{'\r', '\n', '\r', '\n'}

// requestLine returns method and target if b begins with a request.
func requestLine(b []byte) ([]byte, bool) {
	n := methodLen(b)
	if n == 0 || len(b) < n+2 {
		return nil, false
	}
	if c := b[n+1]; c != '/' && c != '*' && c != 'h' && b[0] != 'C' { // origin, asterisk, absolute form; CONNECT has an authority
		return nil, false
	}
	line := b
	if end := bytes.IndexByte(b, '\n'); end >= 0 {
		line = bytes.TrimSuffix(b[:end], headerEnd[:1])
		version := bytes.LastIndexByte(line, ' ')
		if version <= n || !bytes.HasPrefix(line[version+1:], httpName[:]) {
			return nil, false
		}
		return line[:version], true
	}
	if end := bytes.IndexByte(b[n+1:], ' '); end >= 0 {
		line = b[:n+1+end]
	}
	return line, true
}

var httpName = [...]byte{'H', 'T', 'T', 'P', '/', '1', '.'}

// methodLen is the length of the method (RFC 9110, section 9, and PATCH of RFC 5789) that b begins with, before a space.
func methodLen(b []byte) int {
	end := bytes.IndexByte(b[:min(len(b), 8)], ' ')
	if end < 0 {
		return 0
	}
	switch string(b[:end]) { // does not allocate
	case "GET", "PUT", "HEAD", "POST", "TRACE", "PATCH", "DELETE", "OPTIONS", "CONNECT":
		return end
	}
	return 0
}
