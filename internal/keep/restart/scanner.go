package restart

import "bytes"

// Marker on a server's stderr asks for a transparent restart (TP-1).
const Marker = "__MCP_RESTART_REQUEST__"

// MarkerScanner finds [Marker] in a stream that comes in pieces. The zero value is ready.
type MarkerScanner struct {
	text []byte // the end of the stream so far, in which a marker may have begun
}

// scanMost is how much of a piece is looked at together, in bytes: each server keeps a buffer of about that size.
const scanMost = 256

// Scan takes the next piece and returns how many markers end in it. Each occurrence counts once; occurrences that
// share bytes count as one.
func (s *MarkerScanner) Scan(chunk []byte) (found int) {
	for len(chunk) > 0 {
		n := min(len(chunk), scanMost)
		s.text, chunk = append(s.text, chunk[:n]...), chunk[n:]
		rest := s.text
		for {
			_, after, ok := bytes.Cut(rest, []byte(Marker))
			if !ok {
				break
			}
			rest = after
			found++
		}
		s.text = append(s.text[:0], rest[max(0, len(rest)-len(Marker)+1):]...)
	}
	return found
}
