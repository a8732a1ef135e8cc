package secret

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// secretWords are words of a name whose value is a secret, keyWords those that make a key secret.
var (
	secretWords = []string{"password", "passwd", "passphrase", "passcode", "pass", "pwd", "secret", "token", "apikey", "credential", "credentials", "cookie", "authorization", "bearer"}
	endings     = []string{"password", "passwd", "passphrase", "secret", "token", "apikey"} // of words written as one: PGPASSWORD
	keyWords    = []string{"api", "access", "private", "secret", "signing", "encryption", "auth", "license", "master", "service", "account", "client"}
	// aboutWords at the end of a name say that its value is something about a secret.
	aboutWords = []string{"file", "path", "dir", "url", "uri", "endpoint", "id", "name", "type", "limit", "count", "size", "ttl", "timeout", "expiry", "expires", "method", "env", "port", "host", "format", "length", "store", "helper"}
)

// Named reports whether a value of this name is a secret: GITHUB_TOKEN, apiKey, X-Api-Key, --password. max_tokens and token_file
// are none.
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

// wordsOf cuts a name where its words end, in lower case: at separators, and where a capital follows a small letter.
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

// Words is a command line without secrets: what looks like one, and the values behind names and flags of such, as NAME=VALUE,
// --flag=VALUE or --flag VALUE.
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

// ordinary says without a regular expression that a word has no form of a secret, as most words of most commands have none: a
// program that only shows a command at its start need not compile all forms.
func ordinary(word string) bool {
	const shortest = 13 // of those forms that are one word of letters, digits and dashes
	return !strings.ContainsAny(word, "=: \n\t") && (len(word) < shortest || !strings.ContainsAny(word, "0123456789"))
}

// Line is [Words] as one text.
func Line(argv []string) string { return strings.Join(Words(argv), " ") }

// valueIn is where the value of a secret name begins in a word of a command line, -1 if there is none; before is the word in
// front of it.
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

// Known are texts that are secrets because of where they stand.
type Known []string

// leastKnown is the length from which on a text is known again wherever it stands.
const leastKnown = 3

// notSecret is what a value under a secret's name may have beside it: references to where it comes from, and the scheme of a
// header.
var notSecret = lazyregexp.New(`\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|(?i:^(?:bearer|basic|token|digest)\s+)`)

// Add notes a value under a name.
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

// AddWords notes the values of a command line.
func (k *Known) AddWords(argv []string) {
	for i := 1; i < len(argv); i++ {
		if at := valueIn(argv[i-1], argv[i]); at >= 0 && len(argv[i])-at >= leastKnown {
			*k = append(*k, argv[i][at:])
		}
	}
}

// Find is [Find] with what is known.
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

// within reports whether a part of a text begins or ends within a word: it is there by chance then.
func within(text string, start, end int) bool {
	inWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	first, _ := utf8.DecodeRuneInString(text[start:])
	last, _ := utf8.DecodeLastRuneInString(text[:end])
	before, _ := utf8.DecodeLastRuneInString(text[:start])
	after, _ := utf8.DecodeRuneInString(text[end:])
	return inWord(before) && inWord(first) || inWord(last) && inWord(after)
}

// Redact is [Redact] with what is known.
func (k Known) Redact(text string) string {
	if found := k.Find(text); len(found) > 0 {
		text = hide(text, found)
	}
	return Redact(text)
}
