package secret

import (
	"bytes"
	"encoding/json"
	"slices"
)

// JSON returns a valid JSON text without secrets, as valid JSON: a string that looks like a secret, or has one in it, is shown without
// it, and every value below a member whose name is that of a secret, or behind such a flag in an array, is hidden, unless the name is among
// public. Everything else stays byte for byte. A text that is not JSON is returned as a string, redacted.
func JSON(text []byte, public ...string) []byte {
	if !json.Valid(text) {
		return quote(Redact(unquote(quote(string(text))))) // what it shows, which has no invalid UTF-8
	}
	r := redaction{text: text, public: public}
	r.all()
	if r.out == nil {
		return text
	}
	return append(r.out, text[r.done:]...)
}

// redaction goes through a valid text once, iteratively over its containers.
type redaction struct {
	text []byte
	at   int
	out  []byte // nil: nothing was changed
	done int    // how much of text is in out

	public []string
}

// all takes the text from the beginning to its end.
func (r *redaction) all() {
	type level struct {
		object, hidden bool
		before         string // in an array: the word before, of a command line
	}
	levels := []level{{}}
	name := "" // of the member whose value comes next
	for r.at < len(r.text) {
		in := levels[len(levels)-1]
		secret := in.hidden || in.object && Named(name) && !slices.Contains(r.public, name)
		switch c := r.text[r.at]; c {
		case '{', '[':
			levels = append(levels, level{object: c == '{', hidden: secret})
			name = ""
			r.at++
		case '}', ']':
			levels = levels[:len(levels)-1]
			name = ""
			r.at++
		case '"':
			start := r.at
			r.at = stringEnd(r.text, start)
			if in.object && r.isName() {
				name = unquote(r.text[start:r.at])
				continue
			}
			if word := r.text[start+1 : r.at-1]; !in.object {
				secret = secret || valueIn(in.before, string(word)) == 0
				levels[len(levels)-1].before = string(word)
			}
			r.string(start, secret)
			name = ""
		case ' ', '\t', '\n', '\r', ',', ':':
			r.at++
		default: // a number, true, false or null
			start := r.at
			for r.at < len(r.text) && !bytes.ContainsRune([]byte(" \t\n\r,:]}"), rune(r.text[r.at])) {
				r.at++
			}
			if c != 'n' && secret {
				r.replace(start, Hidden)
			}
			name = ""
		}
	}
}

// isName reports whether the string that ends here is the name of a member.
func (r *redaction) isName() bool {
	for i := r.at; i < len(r.text); i++ {
		if c := r.text[i]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c == ':'
		}
	}
	return false
}

// string shows the string from start on without secrets.
func (r *redaction) string(start int, secret bool) {
	raw := r.text[start:r.at]
	if secret {
		if len(raw) > len(`""`) && shown(unquote(raw)) {
			r.replace(start, Hidden)
		}
		return
	}
	if ordinary(string(raw[1 : len(raw)-1])) {
		return
	}
	was := unquote(raw)
	if is := Redact(was); is != was {
		r.replace(start, is)
	}
}

// replace puts a string in the place of what is from start on.
func (r *redaction) replace(start int, by string) {
	r.out = append(append(r.out, r.text[r.done:start]...), quote(by)...)
	r.done = r.at
}

// stringEnd is where the string that begins at i ends, in a valid text.
func stringEnd(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func unquote(raw []byte) string {
	var text string
	_ = json.Unmarshal(raw, &text) // it is valid
	return text
}

func quote(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string: no error
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
