package jsonrpc

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strings"
	"testing"
)

func TestOddID(t *testing.T) {
	const integer, text, odd = "a safe integer", "a string", "odd"
	for raw, want := range map[string]string{
		`0`: integer, `-0`: integer, `1`: integer, `-17`: integer, `1.0`: integer, `1e3`: integer,
		`1E+3`: integer, `1200e-2`: integer, `0.1e1`: integer, `0e999999999999999999999`: integer, `1.500e1`: integer,
		`9007199254740992`: integer, `-9007199254740992`: integer, `9007199254740992.0`: integer,
		`9007199254740993`: odd, `-9007199254740993`: odd, `18446744073709551615`: odd, `123456789012345678901`: odd,
		`1.5`: odd, `1e-1`: odd, `1e400`: odd, `1e99999999999999999999`: odd, `0.0000001`: odd,
		`""`: text, `"1"`: text, `"\u00e9"`: text, `"~p1.1"`: text,
		`true`: odd, `false`: odd, `null`: odd, `{}`: odd, `[1]`: odd,
		``: odd, `01`: odd, `-`: odd, `1.`: odd, `1 `: odd, `"open`: odd, `"a"b"`: odd, `+1`: odd,
	} {
		got := text
		if SafeInteger([]byte(raw)) {
			got = integer
		} else if OddID([]byte(raw)) {
			got = odd
		}
		if got != want {
			t.Errorf("%s is %s, want %s", raw, got, want)
		}
	}
}

// Ids of one group are the same id, those of different groups are not.
func TestSameID(t *testing.T) {
	groups := [][]string{
		{`1`, `1.0`, `1e0`, `1E+0`, `10e-1`, `0.1e1`, `1.000`, `0.0001e4`},
		{`-1`, `-1.0`},
		{`0`, `-0`, `0.0`, `0e5`, `0e-999999999999999999999`},
		{`1000`, `1e3`, `1.0e3`, `10.00e2`},
		{`1.5`}, {`15e-1`}, {`1.50`}, // no integer: compared as written
		{`-1.5`},
		{`15`},
		{`9007199254740992`, `9007199254740992.0`},
		{`9007199254740993`},
		{`123456789012345678`, `123456789012345678.0`},
		{`9223372036854775799`, `922337203685477579.9e1`},
		{`9223372036854775807`},
		{`123456789012345678901`}, {`123456789012345678901.00`}, // too long: compared as written
		{`1e400`}, {`10e399`},
		{`1e18`, `1000000000000000000`},
		{`1e99999999999999999999`},
		{`1e-99999999999999999999`},
		{`"1"`, `"\u0031"`},
		{`"1.0"`},
		{`""`},
		{`"é"`, `"\u00e9"`, `"\u00E9"`},
		{`"e\u0301"`},
		{`"😀"`, `"\ud83d\ude00"`, `"\uD83D\uDE00"`},
		{`"a/b\n"`, `"a\/b\u000a"`},
		{`"\ud800"`, `"\ufffd"`, "\"\xff\"", "\"\uFFFD\""},
		{`"\ud800\ud800"`},
		{`true`}, {`"true"`}, {`null`}, {`{}`}, {`[1]`}, {`1x`},
	}
	for i, group := range groups {
		for j, other := range groups {
			for _, a := range group {
				for _, b := range other {
					want := i == j
					if got := SameID([]byte(a), []byte(b)); got != want {
						t.Errorf("SameID(%s, %s) = %v", a, b, got)
					}
					if same := HashID([]byte(a)) == HashID([]byte(b)); same != want {
						t.Errorf("HashID of %s and %s equal: %v", a, b, same)
					}
				}
			}
		}
	}
	if SameID(nil, nil) || SameID([]byte("1"), nil) {
		t.Error("an absent id is the same as another")
	}
}

// oracleSame says by encoding/json and math/big whether two ids are the same; known is false when it cannot say.
func oracleSame(a, b []byte) (same, known bool) {
	value := func(raw []byte) any {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil || d.InputOffset() != int64(len(raw)) {
			return nil
		}
		return v
	}
	va, vb := value(a), value(b)
	switch va := va.(type) {
	case string:
		vb, ok := vb.(string)
		return ok && va == vb, true
	case json.Number:
		vb, ok := vb.(json.Number)
		if !ok {
			return false, true
		}
		if hugeExponent(string(va)) || hugeExponent(string(vb)) {
			return false, false
		}
		na, okA := oracleInteger(string(va))
		nb, okB := oracleInteger(string(vb))
		if okA && okB && na != nil && nb != nil {
			return na.Cmp(nb) == 0, true
		}
		return bytes.Equal(a, b), okA && okB
	}
	return bytes.Equal(a, b), len(a) > 0
}

// oracleInteger is the value of a number that is whole, nil if it is not; known is false for very long ones.
func oracleInteger(number string) (n *big.Int, known bool) {
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	r, ok := new(big.Rat).SetString(number)
	if !ok || len(digits) > 18 || r.Cmp(big.NewRat(1e18, 1)) > 0 || r.Cmp(big.NewRat(-1e18, 1)) < 0 {
		return nil, false
	}
	if !r.IsInt() {
		return nil, true
	}
	return r.Num(), true
}

func hugeExponent(number string) bool {
	_, exp, _ := strings.Cut(strings.ToLower(number), "e")
	return len(exp) > 4
}

// isRaw reports whether b is a JSON value without space around it, as spans always are.
func isRaw(b []byte) bool { return json.Valid(b) && len(trimSpace(b)) == len(b) }

func FuzzSameID(f *testing.F) {
	for _, pair := range [][2]string{
		{`1`, `1.0`}, {`1e3`, `1000`}, {`"\u00e9"`, `"é"`}, {`"a"`, `"a`}, {`-0`, `0`}, {`1.50`, `15e-1`}, {`null`, `0`},
		{`123456789012345678901`, `1.23456789012345678901e20`}, {`"\ud800"`, "\"\xff\""}, {`0.00100`, `1e-3`}, {`100e-400`, `1e-398`},
	} {
		f.Add([]byte(pair[0]), []byte(pair[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		got := SameID(a, b)
		if got != SameID(b, a) {
			t.Fatalf("SameID(%q, %q) depends on the order", a, b)
		}
		if got && HashID(a) != HashID(b) {
			t.Fatalf("%q and %q are the same id with different hashes", a, b)
		}
		if want, known := oracleSame(a, b); known && isRaw(a) && isRaw(b) && got != want {
			t.Fatalf("SameID(%q, %q) = %v", a, b, got)
		}
		OddID(a)
	})
}

func TestIntegerText(t *testing.T) {
	for raw, want := range map[string]string{
		`"7"`: `7`, `"-7"`: `-7`, `"7.0"`: `7.0`, `"1e3"`: `1e3`, `"0"`: `0`,
		`7`: ``, `""`: ``, `"7.5"`: ``, `"07"`: ``, `" 7"`: ``, `"seven"`: ``, `"\u0037"`: ``, `"7`: ``, `null`: ``, ``: ``,
	} {
		if got := string(IntegerText([]byte(raw))); got != want {
			t.Errorf("IntegerText(%s) = %q, want %q", raw, got, want)
		}
	}
}
