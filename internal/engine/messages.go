// SPDX-License-Identifier: Apache-2.0

package engine

import "fmt"

// messages are the request and the response of a connection test, the same bytes for every engine.
func messages(body int, keep bool) (request, response []byte) {
	connection := "close"
	if keep {
		connection = "keep-alive"
	}
	request = fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: twopath\r\nConnection: %s\r\n\r\n", connection)
	response = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n", body, connection)
	for i := range body { // no two places look alike within 251 bytes, so a piece in the wrong place is seen
		response = append(response, byte(' '+i%251%95))
	}
	return request, response
}
