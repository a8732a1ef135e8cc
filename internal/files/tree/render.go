package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// Raw is a value in the format's syntax.
type Raw string

// Map is a list of members, in order.
type Map []Member

// Member is a key and its value.
type Member struct {
	Key   string
	Value any
}

// nest wraps a value in objects for the keys of a path.
func nest(path []string, v any) any {
	for _, key := range slices.Backward(path) {
		v = Map{{key, v}}
	}
	return v
}

// nodeOf converts a value to a node, as in JSON.
func nodeOf(v any) *Node {
	value, err := hujson.Parse([]byte((&Doc{}).render(v, style{})))
	if _, raw := v.(Raw); raw || err != nil {
		return &Node{Kind: anything}
	}
	return jsonNode(value)
}

// style is the style of the neighbours. Without a newline everything is on one line. Quote is the quote that the
// preceding text begins with.
type style struct {
	newline, indent, step string
	quote                 byte
}

// entries formats new entries between brackets.
func (d *Doc) entries(key string, values []any, st style) string {
	var texts []string
	for _, v := range values {
		texts = append(texts, d.pair(key)+d.render(v, st))
	}
	return strings.Join(texts, ", ")
}

var bareKey = lazyregexp.New(`^[A-Za-z0-9_-]+$`)

// pair is a member's key, up to its value; empty in a list.
func (d *Doc) pair(key string) string {
	switch {
	case key == "":
		return ""
	case d.format == JSON:
		return Quote(key) + ": "
	case d.format == YAML:
		return plain(key, 0) + ": "
	case bareKey.MatchString(key):
		return key + " = "
	}
	return Quote(key) + " = "
}

// render formats a value. A list of texts is on one line, as is everything in TOML and YAML. In JSON, white space
// follows the opening bracket of anything else: [Doc.Spaced] recognises it by that.
func (d *Doc) render(v any, st style) string {
	var kids []string
	ends, before, after := "[]", " ", " "
	inner := style{st.newline, st.indent + st.step, st.step, 0}
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		if d.format == YAML {
			return plain(v, st.quote)
		}
		return Quote(v)
	case []string:
		for _, s := range v {
			kids = append(kids, d.render(s, inner))
		}
		return "[" + strings.Join(kids, ", ") + "]"
	case []any:
		for _, e := range v {
			kids = append(kids, d.render(e, inner))
		}
	case Map:
		ends = "{}"
		for _, m := range v {
			kids = append(kids, d.pair(m.Key)+d.render(m.Value, inner))
		}
	default:
		return fmt.Sprint(v)
	}
	switch {
	case len(kids) == 0:
		return ends
	case d.format == YAML:
		return ends[:1] + strings.Join(kids, ", ") + ends[1:]
	case d.format == JSON && st.newline != "":
		before, after = st.newline+inner.indent, st.newline+st.indent
	}
	return ends[:1] + before + strings.Join(kids, ","+before) + after + ends[1:]
}

// lines formats a block of YAML.
func (d *Doc) lines(v Map, indent string) string {
	var b strings.Builder
	for _, m := range v {
		if group, ok := m.Value.(Map); ok {
			b.WriteString(indent + strings.TrimSuffix(d.pair(m.Key), " ") + d.Newline() + d.lines(group, indent+"  "))
		} else {
			b.WriteString(indent + d.pair(m.Key) + d.render(m.Value, style{}) + d.Newline())
		}
	}
	return b.String()
}

// NewJSON formats v as a JSON text, on several lines.
func NewJSON(v Map) []byte {
	return []byte((&Doc{}).render(v, style{newline: "\n", step: "  "}) + "\n")
}

// Quote formats a text in double quotes, valid in JSON, TOML and YAML.
func Quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // for readability
	_ = e.Encode(s)        // a string cannot fail
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// plain formats a text of YAML, without quotes if that means the same.
func plain(s string, quote byte) string {
	var back []any
	switch {
	case quote == '"' || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }):
		return Quote(s)
	case quote != '\'' && yaml.Load([]byte("["+s+"]"), &back) == nil && len(back) == 1 && back[0] == any(s):
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}
