package streamhttp

import (
	"strings"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
)

// SchemaParamHeaders returns which arguments a tool's raw input schema wants to have mirrored in headers: the properties
// with an x-mcp-header, however deep below properties. A schema that breaks the rules for it (2026-07-28, Schema Extension)
// has none: clients do not use such a tool.
func SchemaParamHeaders(schema []byte) []ParamHeader {
	found, ok := collectParams(nil, schema, nil)
	if !ok {
		return nil
	}
	return found
}

func collectParams(found []ParamHeader, schema []byte, path []string) ([]ParamHeader, bool) {
	properties := jsonrpc.Find(schema, "properties").Of(schema)
	for key, value := range jsonrpc.Members(properties) {
		name, _ := jsonrpc.Unquote(key.Of(properties))
		property := value.Of(properties)
		below := append(path[:len(path):len(path)], name)
		if raw := jsonrpc.Find(property, "x-mcp-header").Of(property); raw != nil {
			header, _ := jsonrpc.Unquote(raw)
			if !isToken(header) || !isPrimitive(jsonrpc.Find(property, "type").Of(property)) || hasHeader(found, header) {
				return nil, false
			}
			found = append(found, ParamHeader{Header: header, Path: below})
		}
		var ok bool
		if found, ok = collectParams(found, property, below); !ok {
			return nil, false
		}
	}
	return found, true
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
