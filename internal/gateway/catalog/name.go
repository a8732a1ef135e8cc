package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Names says when the name of a tool or prompt gets its server's prefix.
type Names string

// The modes. An empty or unknown one means Always.
const (
	// Always: <prefix>_<name>, or just <name> if it begins with <prefix>_ already. Names do not change when servers
	// are added.
	Always Names = "always"
	// OnCollision: the unprefixed name for the first server that has it, in the order of the configuration among
	// those known at that moment; <prefix>_<name> for the others.
	OnCollision Names = "on-collision"
	// Never is like OnCollision: no entry may be lost, so of several with one name only the first goes without its prefix.
	Never Names = "never"
)

// MaxName is the maximum length of a tool's shown name in bytes. Language model APIs accept tool names of up to this length
// made of A-Z a-z 0-9 _ -. MCP allows dots and 128 characters, and SEP-986 slashes as well, but clients that hand such a name on
// have their whole request refused, with the tools of every other server. So what is shown fits the APIs, and the server's own
// name is taken in calls, too.
const MaxName = 64

// hashDigits is the number of hexadecimal digits that are added to distinguish equal names.
const hashDigits = 8

// candidates are the names an entry may have, best first. A name that begins with the prefix anyway is not prefixed, unless that
// would be another entry's name.
func (n Names) candidates(prefix, base string, begins bool) []string {
	prefixed := prefix + "_" + base
	if n == OnCollision || n == Never || begins {
		return []string{base, prefixed}
	}
	return []string{prefixed}
}

// fit makes a tool's candidate valid: other characters become _, and a name that is too long or empty ends in a hash. No model
// is told the names of prompts, which stay as they are.
func fit(l mcp.List, candidate, server, own string) string {
	if l == mcp.Prompts && candidate != "" {
		return candidate
	}
	name := Clean(candidate)
	if name == "" || len(name) > MaxName {
		return hashed(name, server, own, 0)
	}
	return name
}

// Clean replaces every character that the APIs of language models refuse.
func Clean(candidate string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, candidate)
}

// hashed makes a name that ends in a hash of the server and the entry's own name. attempt is increased if the result
// is taken.
func hashed(name, server, own string, attempt int) string {
	h := sha256.New()
	for _, part := range []string{server, own, strconv.Itoa(attempt)} {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10)) // ("a", "bc") must differ from ("ab", "c")
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
	if most := MaxName - 1 - hashDigits; len(name) > most {
		name = name[:most]
	}
	return name + "_" + hex.EncodeToString(h.Sum(nil))[:hashDigits]
}
