package mcp

import (
	"fmt"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// HeaderMark is the member of a schema that has an argument repeated in a header (2026-07-28, Schema Extension).
const HeaderMark = "x-mcp-header"

// ParamHeader is one argument that a client repeats in a header.
type ParamHeader struct {
	Header string   // the part of the header's name after "Mcp-Param-"
	Path   []string // to the value inside arguments, from the outermost member
}

// ParamHeaders returns which arguments a tool's raw input schema marks, at any depth below properties. An error says which
// rule the schema breaks: clients do not use such a tool. Marks more than 64 levels deep are not looked for.
func ParamHeaders(schema []byte) ([]ParamHeader, error) {
	w := markWalk{names: map[string]bool{}}
	w.schema(schema, nil, true)
	if w.fault != nil {
		return nil, w.fault
	}
	return w.found, nil
}

// markWalk looks for marks in a schema.
type markWalk struct {
	found []ParamHeader
	names map[string]bool // of the headers found, in lower case
	fault error           // the first broken rule
	depth int
}

// markDepth is how deep marks are looked for; no real argument is that deep.
const markDepth = 64

// marked are the members of one schema that decide about its mark and those below, raw.
type marked struct {
	header, kind []byte   // nil: there is none
	twice        bool     // there are two of header or kind, and readers of JSON do not agree which one counts
	properties   [][]byte // usually one
}

// schema examines one schema. path leads to its argument; reachable says that only "properties" led to it.
func (w *markWalk) schema(schema []byte, path []string, reachable bool) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > markDepth || w.fault != nil {
		return
	}
	var at marked
	for k, v := range jsonrpc.Members(schema) {
		key, _ := jsonrpc.Unquote(k.Of(schema))
		value := v.Of(schema)
		switch key {
		case HeaderMark:
			at.header, at.twice = value, at.twice || at.header != nil
		case "type":
			at.kind, at.twice = value, at.twice || at.kind != nil
		case "properties":
			at.properties = append(at.properties, value)
		case "default", "const", "enum", "examples": // data, not schemas
		case "$defs", "definitions", "patternProperties", "dependentSchemas": // of schemas, by name
			for _, sub := range jsonrpc.Members(value) {
				w.elsewhere(sub.Of(value))
			}
		default:
			w.elsewhere(value)
		}
	}
	if at.header != nil {
		w.mark(at, path, reachable)
	}
	for _, all := range at.properties {
		for name, sub := range jsonrpc.Members(all) {
			property, _ := jsonrpc.Unquote(name.Of(all))
			w.schema(sub.Of(all), append(path[:len(path):len(path)], property), reachable && len(at.properties) == 1)
		}
	}
}

// elsewhere examines what is not a property: a mark there breaks the rules.
func (w *markWalk) elsewhere(value []byte) {
	switch {
	case jsonrpc.IsObject(value):
		w.schema(value, nil, false)
	case jsonrpc.IsArray(value):
		for sub := range jsonrpc.Elements(value) {
			if jsonrpc.IsObject(sub.Of(value)) {
				w.schema(sub.Of(value), nil, false)
			}
		}
	}
}

// mark records the mark of one schema.
func (w *markWalk) mark(at marked, path []string, reachable bool) {
	name, ok := jsonrpc.Unquote(at.header)
	kind, _ := jsonrpc.Unquote(at.kind)
	switch lower := strings.ToLower(name); {
	case w.fault != nil:
	case !reachable || len(path) == 0:
		w.fault = fmt.Errorf("%s is not at a property that is reached through properties alone", HeaderMark)
	case at.twice:
		w.fault = fmt.Errorf("%s %.200s, or the type beside it, stands twice in one object", HeaderMark, at.header)
	case !ok || !isHeaderName(name):
		w.fault = fmt.Errorf("%s %.200s is not a header name", HeaderMark, at.header)
	case kind != "string" && kind != "integer" && kind != "boolean":
		w.fault = fmt.Errorf("%s %q is at a property that is not a string, integer or boolean", HeaderMark, name)
	case w.names[lower]:
		w.fault = fmt.Errorf("%s %q stands there twice", HeaderMark, name)
	default:
		w.names[lower] = true
		w.found = append(w.found, ParamHeader{Header: name, Path: path})
	}
}

// isHeaderName reports whether s may be the name of a header, or a part of it: tchar of RFC 9110, 5.1.
func isHeaderName(s string) bool {
	for i := range len(s) {
		c := s[i] | 0x20
		if !(c >= 'a' && c <= 'z' && s[i] >= 'A' || s[i] >= '0' && s[i] <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) >= 0) {
			return false
		}
	}
	return s != ""
}
