package streamhttp

import (
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// Limits of a schema with mirrored arguments. Schemas come from servers; real ones are far below these.
const (
	maxSchemaBytes   = 64 << 10
	maxSchemaDepth   = 16 // objects of properties within one another
	maxSchemaHeaders = 64
)

// SchemaParamHeaders returns which arguments a tool's raw input schema mirrors in headers: the properties with an
// x-mcp-header, at any depth below properties. A schema that breaks its rules (2026-07-28, Schema Extension) has none:
// clients do not use such a tool. The same holds for one over 64 KiB, with properties more than 16 levels deep, more
// than 64 headers, or a relevant member twice. The schema is read once.
func SchemaParamHeaders(schema []byte) []ParamHeader {
	if len(schema) > maxSchemaBytes {
		return nil
	}
	root, ok := jsonrpc.OpenObject(schema)
	w := paramWalk{}
	if !ok || !w.schema(&root) || !root.Whole() {
		return nil
	}
	return w.found
}

// paramWalk is one reading of a schema.
type paramWalk struct {
	found []ParamHeader
	path  []string // of the property that is being read
}

// schema reads the schema of the arguments, or of a property. False: the whole schema has no headers.
func (w *paramWalk) schema(o *jsonrpc.Object) bool {
	var header, kind, properties bool // were there
	var name string
	var primitive bool
	for o.Next() {
		switch {
		case o.KeyIs("x-mcp-header") && len(w.path) > 0:
			if header {
				return false
			}
			header = true
			name, _ = jsonrpc.Unquote(o.Value())
		case o.KeyIs("type"):
			if kind {
				return false
			}
			kind = true
			primitive = isPrimitive(o.Value())
		case o.KeyIs("properties"):
			if properties || !w.properties(o) {
				return false
			}
			properties = true
		default:
			o.Value()
		}
	}
	return !header || primitive && w.add(name)
}

// properties reads the value of the member "properties".
func (w *paramWalk) properties(o *jsonrpc.Object) bool {
	all, ok := o.Enter()
	if !ok {
		return o.Value() != nil
	}
	if len(w.path) == maxSchemaDepth {
		return false
	}
	for all.Next() {
		property, ok := all.Enter()
		if !ok {
			all.Value()
			continue
		}
		key, _ := jsonrpc.Unquote(all.Key())
		w.path = append(w.path, key)
		if !w.schema(&property) || !all.Leave(&property) {
			return false
		}
		w.path = w.path[:len(w.path)-1]
	}
	return o.Leave(&all)
}

// add notes that the property at the path is mirrored in a header.
func (w *paramWalk) add(header string) bool {
	if !isToken(header) || hasHeader(w.found, header) || len(w.found) == maxSchemaHeaders {
		return false
	}
	w.found = append(w.found, ParamHeader{Header: header, Path: slices.Clone(w.path)})
	return true
}

func isPrimitive(raw []byte) bool {
	return jsonrpc.EqualString(raw, "string") || jsonrpc.EqualString(raw, "integer") || jsonrpc.EqualString(raw, "boolean")
}

func hasHeader(all []ParamHeader, header string) bool {
	for _, one := range all {
		if strings.EqualFold(one.Header, header) {
			return true
		}
	}
	return false
}

// isToken reports whether s may be (part of) the name of a header: tchar of RFC 9110.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return false
	}
	return s != ""
}
