package catalog

import (
	"regexp"
	"strings"
)

// maxTemplate is the length in bytes from which on a template is not compiled: real templates are short, and a
// compiled one needs many times its length.
const maxTemplate = 2048

// Limits for templates and for URIs that are matched against them: both come from elsewhere, and the time for
// matching grows with each. Real ones are far smaller. Beyond the limits a URI is found only if a list contains it
// literally.
const (
	maxURI         = 8 << 10 // bytes
	maxExpressions = 16      // in one compiled template
	maxTemplates   = 1000    // of one server
)

// template is a URI template (RFC 6570) for the reverse question: can this URI be an expansion of it?
type template struct {
	literals []string       // around and between the expressions: one more than there are expressions
	literal  int            // bytes of all literals: a larger number is more specific
	exact    *regexp.Regexp // nil: not compiled, or invalid
}

// expressions are patterns of what each operator of RFC 6570 may expand to, including undefined variables. Values are
// percent-encoded, so they contain no separators of a URI.
var expressions = map[byte]string{
	'+': `.*`,
	'#': `(?:#.*)?`,
	'.': `(?:\.[^/?#]*)?`,
	'/': `(?:/[^?#]*)?`,
	';': `(?:;[^/?#]*)?`,
	'?': `(?:\?[^#]*)?`,
	'&': `(?:&[^#]*)?`,
}

// plainExpression is {name}. {name*} is treated like {+name}, unlike in the RFC: that is how the Python frameworks
// write the rest of a path.
const plainExpression = `[^/?#]*`

// parseTemplate never fails: an invalid template is one without expressions, which matches only itself.
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
		t.exact, _ = regexp.Compile(pattern.String()) // fails only for text that is not UTF-8, which no URI matches
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

// resembles reports whether uri contains the template's literals, in their order, with anything in between.
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
