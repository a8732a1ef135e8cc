package jsonrpc

import (
	"testing"
	"unicode/utf8"
)

// Every lead byte with every second byte, and third bytes at the edges, at two places of a word.
func TestValidUTF8(t *testing.T) {
	for _, before := range []string{"", "語", "éa"} {
		for c := 0x70; c < 0x100; c++ {
			for d := range 0x100 {
				for _, e := range []byte{0x22, 0x7f, 0x80, 0xbf, 0xc0, 0xe3} {
					text := append([]byte(before), byte(c), byte(d), e, 0x80, 'x', 'y', 'z', 0xe8, 0xaa, 0x9e, 'z')
					for _, text := range [][]byte{text, append(text[:len(before)+3:len(before)+3], "abcdefgh"...)} {
						if validUTF8(text) != utf8.Valid(text) {
							t.Fatalf("% x: %v", text, !utf8.Valid(text))
						}
					}
				}
			}
		}
	}
}
