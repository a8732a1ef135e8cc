package watch

import "strings"

// wildmatch reports whether text matches pattern as in a .gitignore line with a slash: "*", "?" and classes do not match
// "/", "**" between slashes matches any number of directories. It follows gitignore(5), and git's own behaviour in
// details: an unclosed class and a backslash at the end match nothing.
func wildmatch(pattern, text string) bool {
	m := matching{pattern: pattern, text: text}
	if strings.Count(pattern, "*") > 1 {
		// Without this, a few stars make the time explode.
		m.failed = make([]bool, (len(pattern)+1)*(len(text)+1))
	}
	return m.at(0, 0)
}

// matching is one comparison. failed remembers which pairs of positions are known not to match.
type matching struct {
	pattern, text string
	failed        []bool
}

func (m *matching) at(p, t int) bool {
	if m.failed == nil {
		return m.try(p, t)
	}
	key := p*(len(m.text)+1) + t
	if m.failed[key] {
		return false
	}
	ok := m.try(p, t)
	m.failed[key] = !ok
	return ok
}

func (m *matching) try(p, t int) bool {
	for p < len(m.pattern) {
		c := m.pattern[p]
		if c == '*' {
			return m.star(p, t)
		}
		if t >= len(m.text) {
			return false
		}
		switch c {
		case '?':
			if m.text[t] == '/' {
				return false
			}
			p++
		case '[':
			ok, next := matchClass(m.pattern, p, m.text[t])
			if !ok || m.text[t] == '/' {
				return false
			}
			p = next
		case '\\':
			p++
			if p >= len(m.pattern) || m.pattern[p] != m.text[t] {
				return false
			}
			p++
		default:
			if c != m.text[t] {
				return false
			}
			p++
		}
		t++
	}
	return t == len(m.text)
}

// star matches from the star at p on.
func (m *matching) star(p, t int) bool {
	start := p
	for p < len(m.pattern) && m.pattern[p] == '*' {
		p++
	}
	rest := m.pattern[p:]
	free := p-start >= 2 && (start == 0 || m.pattern[start-1] == '/') && (rest == "" || rest[0] == '/' || strings.HasPrefix(rest, `\/`))
	if free && strings.HasPrefix(rest, "/") && m.at(p+1, t) {
		return true // "**/" is also no directory at all
	}
	for ; ; t++ {
		if m.at(p, t) {
			return true
		}
		if t >= len(m.text) || m.text[t] == '/' && !free {
			return false
		}
	}
}

// matchClass matches c with the class that begins at p; next is the position behind it. A class that does not end matches
// nothing.
func matchClass(pattern string, p int, c byte) (ok bool, next int) {
	p++
	negated := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if negated {
		p++
	}
	matched := false
	for first := true; ; first = false {
		if p >= len(pattern) {
			return false, p
		}
		if pattern[p] == ']' && !first {
			return matched != negated, p + 1
		}
		in, after, whole := matchElement(pattern, p, c)
		if !whole {
			return false, after
		}
		matched, p = matched || in, after
	}
}

// matchElement matches c with what stands at p in a class: a named class, a range, or one byte.
func matchElement(pattern string, p int, c byte) (in bool, next int, ok bool) {
	if name, named := namedClass(pattern[p:]); named {
		in, known := inNamedClass(name, c)
		return in, p + len("[::]") + len(name), known
	}
	lo, p, ok := classByte(pattern, p)
	if !ok {
		return false, p, false
	}
	hi := lo
	if p+1 < len(pattern) && pattern[p] == '-' && pattern[p+1] != ']' {
		if hi, p, ok = classByte(pattern, p+1); !ok {
			return false, p, false
		}
	}
	return c == lo || lo <= c && c <= hi, p, true // of a range that is the wrong way round, git takes the beginning
}

// classByte reads one possibly escaped byte of a class.
func classByte(pattern string, p int) (c byte, next int, ok bool) {
	if pattern[p] == '\\' {
		p++
	}
	if p >= len(pattern) {
		return 0, p, false
	}
	return pattern[p], p + 1, true
}

// namedClass is the name in the "[:name:]" that a text begins with.
func namedClass(text string) (name string, ok bool) {
	text, ok = strings.CutPrefix(text, "[:")
	end := strings.IndexByte(text, ']')
	if !ok || end < 0 {
		return "", false
	}
	return strings.CutSuffix(text[:end], ":")
}

// inNamedClass knows the POSIX classes for ASCII, as git does.
func inNamedClass(name string, c byte) (in, known bool) {
	lower, upper, digit := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
	graph := '!' <= c && c <= '~'
	switch name {
	case "alnum":
		return lower || upper || digit, true
	case "alpha":
		return lower || upper, true
	case "blank":
		return c == ' ' || c == '\t', true
	case "cntrl":
		return c < ' ' || c == 0x7f, true
	case "digit":
		return digit, true
	case "graph":
		return graph, true
	case "lower":
		return lower, true
	case "print":
		return graph || c == ' ', true
	case "punct":
		return graph && !lower && !upper && !digit, true
	case "space":
		return c == ' ' || '\t' <= c && c <= '\r', true
	case "upper":
		return upper, true
	case "xdigit":
		return digit || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F', true
	}
	return false, false
}
