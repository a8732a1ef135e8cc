package jsonrpc

import "golang.org/x/sys/cpu"

// skipAVX2 is skipWide in the processor's wide registers (wide_amd64.s).
//
//go:noescape
func skipAVX2(p *byte, i, n int, simple *[256]bool) (at int, high, escapes uint64)

// wideFrom is how many bytes must be left for the wide registers to be worth their set-up.
const wideFrom = 64

var hasWide = cpu.X86.HasAVX2

// skipWide goes over plain text and escapes of two bytes as far as the processor's wide registers take it; the rest,
// and every byte that needs a decision, is for the caller.
func skipWide(b []byte, i int, high uint64, f flags) (int, uint64, flags) {
	if !hasWide || len(b)-i < wideFrom {
		return i, high, f
	}
	at, h, escapes := skipAVX2(&b[0], i, len(b), &simpleEscape)
	if h != 0 {
		high |= highs
	}
	if escapes != 0 {
		f |= hasEscape
	}
	return at, high, f
}
