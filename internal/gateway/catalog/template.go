package catalog

import (
	"regexp"
	"strings"
)

// maxTemplate is the length in bytes from which on a template is not compiled: real ones are short, and a compiled one
// is many times as long.
const maxTemplate = 2048

// What a template, and a URI that is held against templates, may have: the time for that grows with each of them, and both
// come from elsewhere. Real ones are far below. What is beyond is found only if a list has it literally.
const (
	maxURI         = 8 << 10 // bytes
	maxExpressions = 16      // in a template that is compiled
	maxTemplates   = 1000    // of one server
)

// template is a URI template (RFC 6570), to be matched backwards: could this URI have been made of it?
type template struct {
	literals []string       // around and between the expressions: one more than there are expressions
	literal  int            // bytes of all literals: the more, the more specific
	exact    *regexp.Regexp // nil: no URI is known to be an expansion
}

// expressions are what each operator of RFC 6570 may expand to, undefined variables included. The values themselves are
// percent-encoded, so that nothing of what separates parts of a URI is in them.
var expressions = map[byte]string{
	'+': `.*`,
	'#': `(?:#.*)?`,
	'.': `(?:\.[^/?#]*)?`,
	'/': `(?:/[^?#]*)?`,
	';': `(?:;[^/?#]*)?`,
	'?': `(?:\?[^#]*)?`,
	'&': `(?:&[^#]*)?`,
}

// plainExpression is {name}; {name*} is {+name} in all but the RFC: that is how the Python frameworks write the rest of
// a path.
const plainExpression = `[^/?#]*`

// parseTemplate never fails: what is not a template is one without expressions and fits itself only.
func parseTemplate(text string) *template {
	t := &template{}
	var pattern strings.Builder
	pattern.WriteString(`(?s)\A`)
	for rest := text; ; {
		before, after, found := strings.Cut(rest, "{")
		inner, behind, closed := strings.Cut(after, "}")
		if found && (!closed || strings.Contains(inner, "{") || inner == "") || strings.Contains(before, "}") {
			return &template{literals: []string{text}, literal: len(text)}
		}
		t.literals = append(t.literals, before)
		t.literal += len(before)
		pattern.WriteString(regexp.QuoteMeta(before))
		if !found {
			break
		}
		pattern.WriteString(expression(inner))
		rest = behind
	}
	pattern.WriteString(`\z`)
	if len(text) <= maxTemplate && len(t.literals) <= maxExpressions+1 {
		t.exact, _ = regexp.Compile(pattern.String()) // fails for text that is not UTF-8 only, of which no URI is made
	}
	return t
}

func expression(inner string) string {
	if pattern, ok := expressions[inner[0]]; ok {
		return pattern
	}
	if strings.HasSuffix(inner, "*") {
		return expressions['+']
	}
	return plainExpression
}

// expandsTo reports whether uri is an expansion of the template.
func (t *template) expandsTo(uri string) bool { return t.exact != nil && t.exact.MatchString(uri) }

// resembles reports whether uri has the template's literals, in their order, with anything in between.
func (t *template) resembles(uri string) bool {
	last := len(t.literals) - 1
	if last == 0 {
		return uri == t.literals[0]
	}
	rest, ok := strings.CutPrefix(uri, t.literals[0])
	if !ok {
		return false
	}
	if rest, ok = strings.CutSuffix(rest, t.literals[last]); !ok {
		return false
	}
	for _, literal := range t.literals[1:last] {
		if _, rest, ok = strings.Cut(rest, literal); !ok {
			return false
		}
	}
	return true
}
