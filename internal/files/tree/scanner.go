package tree

import (
	"bytes"
	"strings"
)

// scanner finds the ends of syntactic elements in a text that was parsed without errors.
type scanner struct {
	text   []byte
	format Format
}

const whiteSpace = " \t\r\n"

// group is the content of a pair of brackets.
type group struct {
	open, end int
	items     []item
}

// item is the text between two commas, without white space and comments around it.
type item struct {
	start, end, gap, comma int
	inner                  *group // the last group in it
}

// comment returns the end of a comment that begins at an offset, including its line break, or the offset if there is
// none.
func (s scanner) comment(at int) int {
	rest := s.text[at:]
	switch {
	case s.format == JSON && bytes.HasPrefix(rest, []byte("/*")):
		if i := bytes.Index(rest[2:], []byte("*/")); i >= 0 {
			return at + i + 4
		}
		return len(s.text)
	case s.format == JSON && bytes.HasPrefix(rest, []byte("//")):
	case s.format == YAML && at > 0 && strings.IndexByte(whiteSpace+",[]{}", s.text[at-1]) < 0:
		return at
	case s.format == JSON || rest[0] != '#':
		return at
	}
	return s.lineEnd(at)
}

// blank skips white space and comments; gap is where the last white space begins.
func (s scanner) blank(at int) (end, gap int) {
	for gap = at; at < len(s.text); {
		if strings.IndexByte(whiteSpace, s.text[at]) >= 0 {
			at++
		} else if next := s.comment(at); next > at {
			at, gap = next, next
		} else {
			break
		}
	}
	return at, gap
}

// group reads the content of brackets; nil: they are not closed.
func (s scanner) group(open int) *group {
	g := &group{open: open}
	for at := open + 1; at < len(s.text); at++ {
		one := item{comma: -1}
		one.start, one.gap = s.blank(at)
		one.end = one.start
		for at = one.start; at < len(s.text) && strings.IndexByte(",]}", s.text[at]) < 0; {
			next, solid, inner := s.token(at)
			if solid {
				one.end = next
			}
			if inner != nil {
				one.inner = inner
			}
			at = next
		}
		if at >= len(s.text) {
			return nil
		}
		if s.text[at] == ',' {
			one.comma = at
		}
		if one.end > one.start {
			g.items = append(g.items, one)
		}
		if s.text[at] != ',' {
			g.end = at + 1
			return g
		}
	}
	return nil
}

// token skips a text, a group, a comment or a single character; solid is false for white space and comments.
func (s scanner) token(at int) (next int, solid bool, inner *group) {
	c := s.text[at]
	switch {
	case strings.IndexByte(whiteSpace, c) >= 0:
		return at + 1, false, nil
	case c == '[' || c == '{':
		if inner := s.group(at); inner != nil {
			return inner.end, true, inner
		}
		return len(s.text), true, nil
	case s.quoted(at):
		return s.quoteEnd(at), true, nil
	}
	if end := s.comment(at); end > at {
		return end, false, nil
	}
	return at + 1, true, nil
}

// quoted reports whether a quoted text begins here.
func (s scanner) quoted(at int) bool {
	switch c := s.text[at]; {
	case c != '"' && (c != '\'' || s.format == JSON):
		return false
	case s.format == YAML: // within a plain text a quote is an ordinary character
		return at == 0 || strings.IndexByte(whiteSpace+",[]{}:", s.text[at-1]) >= 0
	}
	return true
}

// quoteEnd is the offset after the closing quote.
func (s scanner) quoteEnd(at int) int {
	quote := s.text[at : at+1]
	if three := bytes.Repeat(quote, 3); s.format == TOML && bytes.HasPrefix(s.text[at:], three) {
		for at += 3; at < len(s.text); at++ {
			if bytes.HasPrefix(s.text[at:], three) {
				at += 3
				for at < len(s.text) && s.text[at] == quote[0] { // the text may end with quotes
					at++
				}
				return at
			}
			if quote[0] == '"' && s.text[at] == '\\' {
				at++
			}
		}
		return len(s.text)
	}
	for at++; at < len(s.text); at++ {
		switch {
		case quote[0] == '"' && s.text[at] == '\\':
			at++
		case s.text[at] != quote[0]:
		case s.format == YAML && quote[0] == '\'' && bytes.HasPrefix(s.text[at+1:], quote):
			at++
		default:
			return at + 1
		}
	}
	return len(s.text)
}

// separator finds the colon or equals sign of a member, and returns the offset after it and that of the value; -1:
// there is none.
func (s scanner) separator(from, end int) (sep, value int) {
	mark := byte(':')
	if s.format == TOML {
		mark = '='
	}
	quoted := from < end && s.quoted(from)
	for at := from; at < end; at, _, _ = s.token(at) {
		if s.text[at] == mark && (s.format != YAML || quoted || at+1 == end || strings.IndexByte(whiteSpace, s.text[at+1]) >= 0) {
			value, _ = s.blank(at + 1)
			if value >= end {
				return at + 1, at + 1
			}
			return at + 1, value
		}
	}
	return -1, -1
}

func (s scanner) lineStart(at int) int { return bytes.LastIndexByte(s.text[:at], '\n') + 1 }

// lineEnd is the offset after the line's newline.
func (s scanner) lineEnd(at int) int {
	if i := bytes.IndexByte(s.text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(s.text)
}

// Newline is the line break of the text.
func (s scanner) Newline() string {
	if i := bytes.IndexByte(s.text, '\n'); i > 0 && s.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// trimmed is the end of the text without trailing white space.
func (s scanner) trimmed(from, end int) int {
	return from + len(bytes.TrimRight(s.text[from:end], whiteSpace))
}

// Deepest is how deep a file may be nested: ours need six levels, and recursive parsers need a limit.
const Deepest = 100

// tooDeep returns the offset at which JSON or TOML is nested deeper than that, or -1. It skips strings but not
// comments: unclosed brackets in those matter only if there are a hundred.
func tooDeep(data []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '\n':
			quoted = false
		case quoted:
		case c == '[' || c == '{':
			if depth++; depth > Deepest {
				return i
			}
		case c == ']' || c == '}':
			depth = max(0, depth-1)
		}
	}
	return -1
}
