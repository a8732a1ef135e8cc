package engine

import (
	"fmt"
	"net/url"
	"strings"
)

// Key makes a key of a table and the texts that name something in it. The table is one or more words, such as "lease". What is
// no letter, digit, "-" or "_" in a text is written as "=" and two hexadecimal digits for each byte, so different texts make
// different keys; an empty text is "=".
func Key(table string, texts ...string) string {
	var b strings.Builder
	b.WriteString(table)
	for _, text := range texts {
		b.WriteByte('.')
		if text == "" {
			b.WriteByte('=')
		}
		for i := range len(text) {
			if c := text[i]; plain(c) {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "=%02x", c)
			}
		}
	}
	return b.String()
}

// Names returns the texts of a key that [Key] has made, without its table. It is nil for another key.
func Names(table, key string) []string {
	rest, ok := strings.CutPrefix(key, table+".")
	if !ok {
		return nil
	}
	var names []string
	for token := range strings.SplitSeq(rest, ".") {
		name, ok := unescape(token)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

func unescape(token string) (string, bool) {
	if token == "=" {
		return "", true
	}
	for i := range len(token) {
		if !plain(token[i]) && token[i] != '=' {
			return "", false
		}
	}
	text, err := url.PathUnescape(strings.ReplaceAll(token, "=", "%"))
	return text, err == nil && text != ""
}

// plain are the bytes that every engine takes in a token of a key.
func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
