package jsonrpc

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Masks and values of the low bytes of a word that begin a character of three bytes, or of two.
const (
	mask3, lead3 = 0xc0c0f0, 0x8080e0
	mask2, lead2 = 0xc0e0, 0x80c0
)

// validUTF8 is utf8.Valid, but faster if most characters have three bytes (Chinese, Japanese, Korean).
func validUTF8(b []byte) bool {
	for len(b) >= 8 {
		x := binary.LittleEndian.Uint64(b)
		high := x & highs
		switch {
		case high == 0:
			b = b[8:]
		case high&0x80 == 0:
			b = b[bits.TrailingZeros64(high)>>3:]
		case is3(x) && is3(x>>24):
			b = b[6:]
		case is3(x):
			b = b[3:]
		case x&mask2 == lead2 && x&0x1e != 0: // 0xc0 and 0xc1 would be overlong
			b = b[2:]
		default:
			r, n := utf8.DecodeRune(b)
			if r == utf8.RuneError && n == 1 {
				return false
			}
			b = b[n:]
		}
	}
	return utf8.Valid(b)
}

// is3 reports whether the low bytes of x are a character of three bytes, neither overlong (0xe0 before a byte under
// 0xa0) nor a surrogate (0xed before a byte over 0x9f).
func is3(x uint64) bool {
	second := x & 0x200f
	return x&mask3 == lead3 && second != 0x0000 && second != 0x200d
}
