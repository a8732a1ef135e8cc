package notify

import (
	"slices"
	"strings"
	"unicode"

	"github.com/outlive-mcp/outlive/internal/pattern"
)

// hidden stands where a secret was.
const hidden = "[redacted]"

// secret is one form that secrets have.
type secret struct {
	form *pattern.Pattern
	// group is the part of a match that is hidden; the rest says what it was. 0: all of it.
	group int
	// sure looks at the hidden part when the form alone also fits what is none. nil: it is one.
	sure func(value string) bool
}

// secrets are the forms that are known. Where a vendor gives its tokens a prefix, that is enough; everything else is
// known by the name it is assigned to.
var secrets = []secret{
	{form: pattern.New(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)`)},
	{form: pattern.New(`\b(?:sk|rk|pk)[-_][A-Za-z0-9_-]{16,}`), sure: random},                           // OpenAI, Anthropic, Stripe
	{form: pattern.New(`\b(?:gh[opsur]_|github_pat_|glpat-|npm_|hf_|pypi-|dop_v1_)[A-Za-z0-9_-]{16,}`)}, // forges and registries
	{form: pattern.New(`\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{8,}`)},                                         // Slack
	{form: pattern.New(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`)},                                                // AWS
	{form: pattern.New(`\bAIza[0-9A-Za-z_-]{30,}`)},                                                     // Google
	{form: pattern.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`)},               // JSON Web Tokens
	{form: pattern.New(`[0-9]{6,12}:[A-Za-z0-9_-]{30,}`)},                                               // Telegram bots
	{form: pattern.New(`(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{6,})`), group: 1, sure: random},
	{form: pattern.New(`(?i)\bauthorization["']?[ \t]*[:=][ \t]*["']?(?:basic|token|bearer|digest)[ \t]+([^\s"']+)`), group: 1, sure: shown},
	{form: pattern.New(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#:@]*:([^\s/?#@]+)@`), group: 1, sure: shown},
	{form: pattern.New(`(?i)(?:pass(?:word|wd|phrase|code)?|pwd|secret)[a-z0-9_]*["']?\s{0,4}(?:=>|:=|[:=])[ \t]*(` + value + `)`), group: 1, sure: shown},
	{form: pattern.New(`(?i)(?:token|api[_-]?key|[_-]key|credentials?|cookie)["']?\s{0,4}(?:=>|:=|[:=])[ \t]*(` + value + `)`), group: 1, sure: random},
	{form: pattern.New(`(?i)--(?:pass(?:word|wd|phrase)?|secret)[ \t]+(` + value + `)`), group: 1, sure: shown},
	{form: pattern.New(`(?i)--(?:token|api[_-]?key|[a-z-]*-key)[ \t]+(` + value + `)`), group: 1, sure: random},
}

// value is what stands behind a name: in quotes, or up to the next white space or separator.
const value = `"(?:[^"\\\n]|\\.)+"|'[^'\n]+'|[^\s"',;&)}\]]+`

// shown says that the value is one, and has not been hidden already.
func shown(value string) bool {
	return !strings.Contains(value, strings.TrimSuffix(hidden, "]")) && strings.Trim(value, `"'*`) != ""
}

// random says that the value looks like chance rather than a word or a count: "token: expired" and "max_token=4096" are
// worth reading.
func random(value string) bool {
	if !shown(value) {
		return false
	}
	digits, letters := 0, 0
	for _, r := range value {
		switch {
		case unicode.IsDigit(r):
			digits++
		case unicode.IsLetter(r):
			letters++
		}
	}
	return len(value) >= 20 || len(value) >= 6 && digits > 0 && letters > 0
}

// Redact replaces what looks like a secret by "[redacted]": API keys, passwords, private keys. It errs on the side of
// hiding. What it has returned it leaves alone, and it never makes more than eleven bytes of one.
func Redact(text string) string { return Text{Body: text}.redacted().Body }

// redactPasses is how often a text is gone through: what was hidden may bring a name and a value together.
const redactPasses = 8

// redacted is the text without secrets. What of them was bold still is.
func (t Text) redacted() Text {
	for range redactPasses {
		found := findSecrets(t.Body)
		if len(found) == 0 {
			break
		}
		t = t.hide(found)
	}
	return t
}

// findSecrets returns where secrets are, in order, without overlaps.
func findSecrets(s string) []Span {
	var found []Span
	for _, k := range secrets {
		for _, m := range k.form.Compiled().FindAllStringSubmatchIndex(s, -1) {
			at := Span{m[2*k.group], m[2*k.group+1]}
			if k.sure == nil || k.sure(s[at.Start:at.End]) {
				found = append(found, at)
			}
		}
	}
	slices.SortFunc(found, func(a, b Span) int { return a.Start - b.Start })
	var apart []Span
	for _, f := range found {
		if n := len(apart); n > 0 && f.Start < apart[n-1].End {
			apart[n-1].End = max(apart[n-1].End, f.End)
		} else {
			apart = append(apart, f)
		}
	}
	return apart
}

// hide replaces parts of the text.
func (t Text) hide(parts []Span) Text {
	var b strings.Builder
	end := 0
	for _, p := range parts {
		b.WriteString(t.Body[end:p.Start])
		b.WriteString(hidden)
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
func shifted(at int, parts []Span, end bool) int {
	shift := 0
	for _, p := range parts {
		switch {
		case at >= p.End:
			shift += len(hidden) - (p.End - p.Start)
		case at > p.Start && end:
			return p.Start + shift + len(hidden)
		case at > p.Start:
			return p.Start + shift
		}
	}
	return at + shift
}
