package jsonrpc

import (
	"math"
	"strconv"
)

// Integer parses a whole JSON number in any notation (1, 1.0, 1e0), if digits and value fit an int64. It returns false for
// another number, and for what is not a number.
func Integer(raw []byte) (n int64, ok bool) {
	if scanNumber(raw, 0) != len(raw) {
		return 0, false
	}
	n, tens, ok := parseDigits(raw)
	for ; ok && n != 0 && tens > 0; tens-- {
		ok = n <= math.MaxInt64/10
		n *= 10
	}
	for ; ok && n != 0 && tens < 0; tens++ {
		ok = n%10 == 0
		n /= 10
	}
	if raw[0] == '-' {
		n = -n
	}
	return n, ok
}

// parseDigits parses a valid JSON number, without its sign, as n times ten to the power of tens. It returns false if
// one of the two is too large.
func parseDigits(raw []byte) (n int64, tens int, ok bool) {
	fraction := 0 // 1 after the point
	for i, c := range raw {
		switch {
		case c == '-':
		case c == '.':
			fraction = 1
		case c|0x20 == 'e':
			exp, err := strconv.Atoi(string(raw[i+1:]))
			return n, tens + exp, err == nil || n == 0
		case n > (math.MaxInt64-9)/10:
			return 0, 0, false
		default:
			n = n*10 + int64(c-'0')
			tens -= fraction
		}
	}
	return n, tens, true
}

// Greater reports whether raw JSON number a is more than b. What cannot be read counts as more, so that it passes where numbers
// only rise.
func Greater(a, b []byte) bool {
	x, errA := strconv.ParseFloat(string(a), 64)
	y, errB := strconv.ParseFloat(string(b), 64)
	return errA != nil || errB != nil || x > y
}
