package secret

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// secretWords are words of a name whose value is a secret; keyWords are those before "key" that have the same effect.
var (
	secretWords = []string{"password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "token", "apikey", "credential", "credentials", "cookie", "authorization", "bearer"}
	endings     = []string{"password", "passwd", "passphrase", "secret", "token", "apikey"} // PGPASSWORD
	keyWords    = []string{"api", "access", "private", "secret", "signing", "encryption", "auth", "license", "master", "service", "account", "client"}
	// aboutWords at the end of a name mean that the value is not the secret itself but something about it.
	aboutWords = []string{"file", "path", "dir", "url", "uri", "endpoint", "id", "name", "type", "limit", "count", "size", "ttl", "timeout", "expiry", "expires", "method", "env", "port", "host", "format", "length", "store", "helper"}
)

// Named reports whether a value of this name is a secret: GITHUB_TOKEN, apiKey, X-Api-Key, --password. max_tokens and
// token_file are not.
func Named(name string) bool {
	words := wordsOf(name)
	if len(words) == 0 || slices.Contains(aboutWords, words[len(words)-1]) {
		return false
	}
	for i, w := range words {
		if slices.Contains(secretWords, w) || slices.ContainsFunc(endings, func(end string) bool { return strings.HasSuffix(w, end) }) || w == "key" && i > 0 && slices.Contains(keyWords, words[i-1]) {
			return true
		}
	}
	return false
}

// wordsOf splits a name into words in lower case: at separators, and between a small letter and a capital.
func wordsOf(name string) []string {
	var b strings.Builder
	small := false
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = ' '
		case unicode.IsUpper(r) && small:
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// Words returns a command line without secrets: it hides what looks like one, and the values that follow secret names
// and flags, as NAME=VALUE, --flag=VALUE or --flag VALUE.
func Words(argv []string) []string {
	out := make([]string, len(argv))
	for i, word := range argv {
		before := ""
		if i > 0 {
			before = argv[i-1]
		}
		if at := valueIn(before, word); at >= 0 {
			out[i] = word[:at] + Hidden
		} else if out[i] = word; !ordinary(word) {
			out[i] = Redact(word)
		}
	}
	return out
}

// ordinary reports, without a regular expression, that a word cannot have the form of a secret. It is true for most
// words of most commands, so that a program that shows only a command need not compile all forms.
func ordinary(word string) bool {
	const shortest = 13 // of the forms that are one word of letters, digits and dashes
	return !strings.ContainsAny(word, "=: \n\t") && (len(word) < shortest || !strings.ContainsAny(word, "0123456789"))
}

// Line is [Words] as one text.
func Line(argv []string) string { return strings.Join(Words(argv), " ") }

// valueIn returns where the value of a secret name begins in a word of a command line, or -1; before is the preceding
// word.
func valueIn(before, word string) int {
	at := 0
	if name, _, assigned := strings.Cut(word, "="); assigned && plainName(name) && Named(name) {
		at = len(name) + 1
	} else if !strings.HasPrefix(before, "-") || strings.HasPrefix(word, "-") || strings.Contains(before, "=") || !Named(before) {
		return -1
	}
	if !shown(word[at:]) {
		return -1
	}
	return at
}

// plainName reports whether a text can be the name of a variable or of a flag.
func plainName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	})
}

// Known is a list of texts that are known to be secrets.
type Known []string

// leastKnown is the minimum length of a text that is searched for everywhere.
const leastKnown = 3

// notSecret matches the parts of a secret's value that are not secret: references, and the scheme of a header.
var notSecret = lazyregexp.New(`\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|(?i:^(?:bearer|basic|token|digest)\s+)`)

// Add adds the value of a name, if the name means a secret.
func (k *Known) Add(name, value string) {
	if !Named(name) {
		return
	}
	for _, part := range notSecret.Compiled().Split(value, -1) {
		if len(part) >= leastKnown && shown(part) {
			*k = append(*k, part)
		}
	}
}

// AddWords adds the secret values in a command line.
func (k *Known) AddWords(argv []string) {
	for i := 1; i < len(argv); i++ {
		if at := valueIn(argv[i-1], argv[i]); at >= 0 && len(argv[i])-at >= leastKnown {
			*k = append(*k, argv[i][at:])
		}
	}
}

// Find is [Find], and also finds the known secrets.
func (k Known) Find(text string) []Span {
	found := Find(text)
	for _, one := range k {
		for from := 0; ; {
			at := strings.Index(text[from:], one)
			if at < 0 {
				break
			}
			at += from
			if from = at + len(one); !within(text, at, from) {
				found = append(found, Span{at, from})
			}
		}
	}
	return apart(found)
}

// within reports whether a part of a text begins or ends within a word: it is a coincidence then.
func within(text string, start, end int) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(text[start:])
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return inWord(before) && inWord(first) || inWord(last) && inWord(after)
}

// Redact is [Redact], and also hides the known secrets.
func (k Known) Redact(text string) string {
	if found := k.Find(text); len(found) > 0 {
		text = hide(text, found)
	}
	return Redact(text)
}
