package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Names says when a tool's or prompt's name carries its server's prefix.
type Names string

// The modes. An empty or unknown one is Always.
const (
	// Always: <prefix>_<name>, and <name> itself if it begins with <prefix>_ already. Whatever server comes later, names stay
	// what they are.
	Always Names = "always"
	// OnCollision: the name itself for the first server that has it, in the order of the configuration among those
	// known at that moment; <prefix>_<name> for the others.
	OnCollision Names = "on-collision"
	// Never is like OnCollision, since nothing may be lost, but a prefix that was needed is a Collision of the View.
	Never Names = "never"
)

// MaxName is the length of the longest shown name in bytes; together with the letters A-Z a-z 0-9 _ - it is what the
// APIs of language models take as a tool's name.
const MaxName = 64

// hashDigits is how many hexadecimal digits tell apart what would look the same.
const hashDigits = 8

// candidates are the names an entry may have, best first, and how many of them are as good as promised. One that begins with the
// prefix by itself needs no other, as long as that is nobody else's name.
func (n Names) candidates(prefix, base string, begins bool) (candidates []string, promised int) {
	prefixed := prefix + "_" + base
	switch n {
	case OnCollision:
		return []string{base, prefixed}, 2
	case Never:
		return []string{base, prefixed}, 1
	default:
		if begins {
			return []string{base, prefixed}, 2
		}
		return []string{prefixed}, 1
	}
}

// fit makes a valid name of a candidate: other characters become _, and what is too long, or empty, ends in a hash.
func fit(candidate, server, own string) string {
	name := clean(candidate)
	if name == "" || len(name) > MaxName {
		return hashed(name, server, own, 0)
	}
	return name
}

// clean replaces every character that the APIs of language models refuse.
func clean(candidate string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, candidate)
}

// hashed ends a clean name in a hash of what it stands for. attempt counts on when even that is taken.
func hashed(name, server, own string, attempt int) string {
	h := sha256.New()
	for _, part := range []string{server, own, strconv.Itoa(attempt)} {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10)) // so that ("a", "bc") is not ("ab", "c")
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	if most := MaxName - 1 - hashDigits; len(name) > most {
		name = name[:most]
	}
	return name + "_" + hex.EncodeToString(h.Sum(nil))[:hashDigits]
}
