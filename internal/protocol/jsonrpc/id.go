package jsonrpc

import (
	"bytes"
	"hash/maphash"
)

// maxSafe is the largest integer that every JSON parser represents exactly.
const maxSafe = 1 << 53

// SafeInteger reports whether a raw id is a whole number of at most ±2^53, in any notation (1, 1.0, 1e3).
func SafeInteger(raw []byte) bool {
	n, ok := Integer(raw)
	return ok && -maxSafe <= n && n <= maxSafe
}

// OddID reports whether servers may return a raw id changed: it is neither a string nor a [SafeInteger], but a fraction, a larger
// number, true, null, an object, an array or invalid JSON.
func OddID(raw []byte) bool {
	_, _, text := inside(raw)
	return !text && !SafeInteger(raw)
}

// idSeed makes HashID differ between processes, so that colliding ids cannot be chosen.
var idSeed = maphash.MakeSeed()

// HashID returns a hash that is equal for ids that are equal for SameID. It is valid in this process only. It does
// not allocate.
func HashID(raw []byte) uint64 {
	if len(raw) > 0 && raw[0] == '"' {
		return hashText(raw)
	}
	if n, ok := Integer(raw); ok {
		return uint64(n)
	}
	return maphash.Bytes(idSeed, raw)
}

// hashText hashes the value of a raw string, after a quote that distinguishes it from other types.
func hashText(raw []byte) uint64 {
	text, f, ok := inside(raw)
	switch {
	case !ok:
		return maphash.Bytes(idSeed, raw)
	case f == 0:
		return maphash.Bytes(idSeed, raw[:len(raw)-1])
	}
	var h maphash.Hash
	h.SetSeed(idSeed)
	_ = h.WriteByte('"')
	for d := (decoder{in: text}); len(d.in) > 0; {
		_, _ = h.Write(d.next())
	}
	return h.Sum64()
}

// SameID reports whether two raw ids are the same id: strings are compared by their value ("\u00e9" is "é"), whole
// numbers that fit an int64 by theirs (1, 1.0 and 1e0 are the same, so that a server may echo another notation),
// anything else byte for byte. A string never equals a number. It does not allocate.
func SameID(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return len(a) > 0
	}
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	if a[0] == '"' {
		return equalText(a, b)
	}
	n, whole := Integer(a)
	if !whole {
		return false
	}
	m, whole := Integer(b)
	return whole && n == m
}

// IntegerText returns the whole number that a raw string holds as its text ("7", "7.0"), as a part of raw; nil if it
// holds anything else. Some servers return the number of a request as text.
func IntegerText(raw []byte) []byte {
	text, f, ok := inside(raw)
	if !ok || f != 0 {
		return nil
	}
	if _, whole := Integer(text); !whole {
		return nil
	}
	return text
}
