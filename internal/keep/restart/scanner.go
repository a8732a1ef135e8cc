package restart

import "bytes"

// Marker on a server's stderr asks for a transparent restart (TP-1).
const Marker = "__MCP_RESTART_REQUEST__"

// MarkerScanner finds [Marker] in a stream that comes in pieces. It keeps one number, whatever the stream. The zero
// value is ready.
type MarkerScanner struct {
	matched int // bytes of the marker that the stream ends with
}

// fallback[n] is how much of the marker still matches when the byte after its first n does not: the longest proper
// beginning that is also an end of those n bytes.
var fallback = func() (f [len(Marker) + 1]int) {
	for n, k := 2, 0; n <= len(Marker); n++ {
		for k > 0 && Marker[k] != Marker[n-1] {
			k = f[k]
		}
		if Marker[k] == Marker[n-1] {
			k++
		}
		f[n] = k
	}
	return f
}()

// Scan takes the next piece and returns how many markers end in it. Each occurrence counts once; occurrences that
// share bytes count as one.
func (s *MarkerScanner) Scan(chunk []byte) int {
	found := 0
	for i := 0; i < len(chunk); i++ {
		if s.matched == 0 {
			skip := bytes.IndexByte(chunk[i:], Marker[0])
			if skip < 0 {
				return found
			}
			i += skip
		}
		for s.matched > 0 && chunk[i] != Marker[s.matched] {
			s.matched = fallback[s.matched]
		}
		if chunk[i] == Marker[s.matched] {
			s.matched++
		}
		if s.matched == len(Marker) {
			s.matched = 0
			found++
		}
	}
	return found
}
