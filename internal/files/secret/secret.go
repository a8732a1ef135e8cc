package secret

import (
	"slices"
	"strings"
	"unicode"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Hidden replaces a secret.
const Hidden = "[redacted]"

// Span is a range of a text, in bytes.
type Span struct{ Start, End int }

// look is one form of secrets.
type look struct {
	form *lazyregexp.Pattern
	// group is the number of the group that is hidden; the rest of the match says what it was. 0: the whole match.
	group int
	// words are what a text must have one of, in lower case, to have this form: most texts need not be held against it.
	words []string
	// sure checks the hidden part if the form also matches other texts. nil: every match is a secret.
	sure func(value string) bool
}

// looks are the known forms. A vendor's token prefix is sufficient; other secrets are recognised by the name they are
// assigned to.
var looks = []look{
	{form: lazyregexp.New(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|\z)`), words: []string{"-----begin"}},
	{form: lazyregexp.New(`\b(?:sk|rk|pk)[-_][A-Za-z0-9_-]{16,}`), words: []string{"sk-", "sk_", "rk-", "rk_", "pk-", "pk_"}, sure: random},                                                                                     // OpenAI, Anthropic, Stripe
	{form: lazyregexp.New(`\b(?:gh[opsur]_|github_pat_|glpat-|npm_|hf_|pypi-|dop_v1_)[A-Za-z0-9_-]{16,}`), words: []string{"gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "npm_", "hf_", "pypi-", "dop_v1_"}}, // forges and registries
	{form: lazyregexp.New(`\b(?:xox[a-z]|xapp)-[A-Za-z0-9-]{8,}`), words: []string{"xox", "xapp"}},                                                                                                                              // Slack
	{form: lazyregexp.New(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b`), words: []string{"akia", "asia"}},                                                                                                                                    // AWS
	{form: lazyregexp.New(`\bAIza[0-9A-Za-z_-]{30,}`), words: []string{"aiza"}},                                                                                                                                                 // Google
	{form: lazyregexp.New(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?`), words: []string{"eyj"}},                                                                                                            // JSON Web Tokens
	{form: lazyregexp.New(`[0-9]{6,12}:[A-Za-z0-9_-]{30,}`), words: []string{":"}},                                                                                                                                              // Telegram bots
	{form: lazyregexp.New(`(?i)\bbearer[ \t]+([A-Za-z0-9._~+/=-]{6,})`), words: []string{"bearer"}, group: 1, sure: random},
	{form: lazyregexp.New(`(?i)\bauthorization["']?[ \t]*[:=][ \t]*["']?(?:basic|token|bearer|digest)[ \t]+([^\s"']+)`), words: []string{"authorization"}, group: 1, sure: shown},
	{form: lazyregexp.New(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/?#:@]*:([^\s/?#@]+)@`), words: []string{"://"}, group: 1, sure: shown},
	{form: lazyregexp.New(`(?i)(?:pass(?:word|wd|phrase|code)?|pwd|secret)[a-z0-9_]*["']?\s{0,4}(?:=>|:=|[:=])[ \t]*(` + value + `)`), words: []string{"pass", "pwd", "secret"}, group: 1, sure: said},
	{form: lazyregexp.New(`(?i)(?:token|api[_-]?key|[_-]key|credentials?|cookie|bearer|signature)["']?\s{0,4}(?:=>|:=|[:=])[ \t]*(` + value + `)`), words: []string{"token", "key", "credential", "cookie", "bearer", "signature"}, group: 1, sure: random},
	{form: lazyregexp.New(`(?i)--(?:pass(?:word|wd|phrase)?|secret)[ \t]+(` + value + `)`), words: []string{"--pass", "--secret"}, group: 1, sure: shown},
	{form: lazyregexp.New(`(?i)--(?:token|api[_-]?key|[a-z-]*-key)[ \t]+(` + value + `)`), words: []string{"--"}, group: 1, sure: random},
}

// value matches what follows a name: a quoted text, or everything up to white space or a separator.
const value = `"(?:[^"\\\n]|\\.)+"|'[^'\n]+'|[^\s"',;&)}\]]+`

// reference matches values that refer to others: ${NAME}, $NAME.
var reference = lazyregexp.New(`^\$(?:\{[^}]*\}?|[A-Za-z_][A-Za-z0-9_]*)$`)

// shown reports that a value has not been hidden already, and is not a reference.
func shown(value string) bool {
	return !reference.MatchString(strings.Trim(value, `"'[({`)) && !strings.Contains(value, strings.TrimSuffix(Hidden, "]")) && strings.Trim(value, `"'*`) != ""
}

// said reports that a value is shown and no boolean: "password": true says that an input is one.
func said(value string) bool {
	return shown(value) && value != "true" && value != "false" && value != "null"
}

// random reports that a value looks random rather than like a word or a count: "token: expired" and "max_token=4096"
// are worth showing.
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

// possible reports whether a text in lower case can have the form.
func (k *look) possible(small string) bool {
	return slices.ContainsFunc(k.words, func(word string) bool { return strings.Contains(small, word) })
}

// Find returns the positions of secrets, in order, without overlaps.
func Find(text string) []Span {
	var found []Span
	small := strings.ToLower(text)
	odd := strings.ContainsRune(text, '\u017F') // a letter that a form takes for an s
	for _, k := range looks {
		if !odd && !k.possible(small) {
			continue
		}
		for _, m := range k.form.Compiled().FindAllStringSubmatchIndex(text, -1) {
			at := Span{m[2*k.group], m[2*k.group+1]}
			if k.sure == nil || k.sure(text[at.Start:at.End]) {
				found = append(found, at)
			}
		}
	}
	return apart(found)
}

// apart sorts spans and joins those that overlap.
func apart(found []Span) []Span {
	slices.SortFunc(found, func(a, b Span) int { return a.Start - b.Start })
	var out []Span
	for _, f := range found {
		if n := len(out); n > 0 && f.Start < out[n-1].End {
			out[n-1].End = max(out[n-1].End, f.End)
		} else {
			out = append(out, f)
		}
	}
	return out
}

// passes is how often a text is searched: hiding one secret may bring another name and its value together.
const passes = 8

// Redact replaces what looks like a secret by [Hidden]: API keys, passwords, private keys. In doubt it hides. Applied
// to its own result it changes nothing.
func Redact(text string) string {
	for range passes {
		found := Find(text)
		if len(found) == 0 {
			break
		}
		text = hide(text, found)
	}
	return text
}

func hide(text string, parts []Span) string {
	var b strings.Builder
	end := 0
	for _, p := range parts {
		b.WriteString(text[end:p.Start])
		b.WriteString(Hidden)
		end = p.End
	}
	b.WriteString(text[end:])
	return b.String()
}
