package jsonrpc

// decimal is the exact value of a JSON number, whatever its size: digits × 10^exp, without zeros at either end of the
// digits. Numbers that are whole and have at most 18 digits are small and in n instead.
type decimal struct {
	n      int64
	exp    int64
	digits []byte // as written: a point may stand among them
	count  int    // of digits, the point not counted
	neg    bool
	small  bool
	huge   bool // the exponent itself is beyond counting: compare as written
}

const (
	smallDigits = 18      // any whole number of so many digits fits an int64
	maxExponent = 1 << 40 // beyond any exponent that the digits of a real text could bring back into range
)

// parseDecimal reads raw, which must be a JSON number from end to end.
func parseDecimal(raw []byte) (decimal, bool) {
	if n, ok := parseShort(raw); ok {
		return decimal{n: n, small: true}, true
	}
	if len(raw) == 0 || scanNumber(raw, 0) != len(raw) {
		return decimal{}, false
	}
	var d decimal
	if raw[0] == '-' {
		d.neg = true
		raw = raw[1:]
	}
	end := len(raw)
	for i, c := range raw {
		if c|0x20 == 'e' {
			end = i
			d.exp, d.huge = parseExponent(raw[i+1:])
			break
		}
	}
	d.trim(raw[:end])
	if d.count == 0 {
		return decimal{small: true}, true // zero has neither sign nor exponent
	}
	if !d.huge && d.exp >= 0 && d.exp+int64(d.count) <= smallDigits {
		d.makeSmall()
	}
	return d, true
}

// parseShort reads the plain integers that nearly all ids are.
func parseShort(raw []byte) (int64, bool) {
	digits, sign := raw, int64(1)
	if len(raw) > 0 && raw[0] == '-' {
		digits, sign = raw[1:], -1
	}
	if len(digits) == 0 || len(digits) > smallDigits || digits[0] == '0' && len(digits) > 1 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n * sign, true
}

// parseExponent reads what stands after the e of a valid number.
func parseExponent(b []byte) (exp int64, huge bool) {
	neg := b[0] == '-'
	if b[0] == '-' || b[0] == '+' {
		b = b[1:]
	}
	for _, c := range b {
		if exp = exp*10 + int64(c-'0'); exp > maxExponent {
			return 0, true
		}
	}
	if neg {
		return -exp, false
	}
	return exp, false
}

// trim takes the mantissa, cuts the zeros at both ends and moves the exponent accordingly.
func (d *decimal) trim(mantissa []byte) {
	start, end, point := -1, 0, len(mantissa)
	for i, c := range mantissa {
		switch {
		case c == '.':
			point = i
		case c != '0':
			if start < 0 {
				start = i
			}
			end = i + 1
		}
	}
	if start < 0 {
		return
	}
	d.digits = mantissa[start:end]
	d.count = len(d.digits)
	if start < point && point < end {
		d.count--
	}
	if end > point {
		d.exp -= int64(end - point - 1)
	} else {
		d.exp += int64(point - end)
	}
}

func (d *decimal) makeSmall() {
	for _, c := range d.digits {
		if c != '.' {
			d.n = d.n*10 + int64(c-'0')
		}
	}
	for range d.exp {
		d.n *= 10
	}
	if d.neg {
		d.n = -d.n
	}
	d.small = true
}

func (d *decimal) equal(o *decimal) bool {
	if d.small || o.small {
		return d.small && o.small && d.n == o.n
	}
	if d.huge || o.huge || d.neg != o.neg || d.exp != o.exp || d.count != o.count {
		return false
	}
	a, b := d.digits, o.digits
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] == '.':
			a = a[1:]
		case b[0] == '.':
			b = b[1:]
		case a[0] != b[0]:
			return false
		default:
			a, b = a[1:], b[1:]
		}
	}
	return true
}
