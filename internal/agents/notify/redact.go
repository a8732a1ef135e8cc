package notify

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/secret"
)

// Redact replaces what looks like a secret by "[redacted]", see [secret.Redact]. It never makes more than eleven bytes of one.
func Redact(text string) string { return secret.Redact(text) }

// redactPasses is how often a text is redacted: removing a secret may bring a name and a value together.
const redactPasses = 8

// redacted is the text without secrets. Bold text stays bold.
func (t Text) redacted() Text {
	for range redactPasses {
		found := secret.Find(t.Body)
		if len(found) == 0 {
			break
		}
		t = t.hide(found)
	}
	return t
}

// hide replaces parts of the text.
func (t Text) hide(parts []secret.Span) Text {
	var b strings.Builder
	end := 0
	for _, p := range parts {
		b.WriteString(t.Body[end:p.Start])
		b.WriteString(secret.Hidden)
		end = p.End
	}
	b.WriteString(t.Body[end:])
	r := Text{Body: b.String()}
	for _, bold := range t.Bold {
		moved := Span{shifted(bold.Start, parts, false), shifted(bold.End, parts, true)}
		if n := len(r.Bold); n > 0 {
			moved.Start = max(moved.Start, r.Bold[n-1].End) // two that end and begin in the same secret
		}
		if moved.Start < moved.End {
			r.Bold = append(r.Bold, moved)
		}
	}
	return r
}

// shifted is where position at of a text is once parts of it are hidden. One within a part goes to its begin or end.
func shifted(at int, parts []secret.Span, end bool) int {
	shift := 0
	for _, p := range parts {
		switch {
		case at >= p.End:
			shift += len(secret.Hidden) - (p.End - p.Start)
		case at > p.Start && end:
			return p.Start + shift + len(secret.Hidden)
		case at > p.Start:
			return p.Start + shift
		}
	}
	return at + shift
}
