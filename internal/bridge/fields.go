package bridge

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/jsonrpc"
)

// legacyForm are raw params of an elicitation by form as version has them.
func legacyForm(params []byte, version string) ([]byte, error) {
	fields := member(params, "requestedSchema", "properties")
	now := fields
	for key, value := range jsonrpc.Members(fields) {
		name, ok := jsonrpc.Unquote(key.Of(fields))
		if !ok {
			return nil, errUnable
		}
		field, err := legacyField(value.Of(fields), version)
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(field, value.Of(fields)) {
			now = set(now, field, name)
		}
	}
	if bytes.Equal(now, fields) {
		return params, nil
	}
	return set(params, now, "requestedSchema", "properties"), nil
}

// legacyField is one raw field of a form. Limits that are no whole numbers are left out, because the legacy era's schema
// has whole ones only; the server checks what it gets in any case. Choices with titles were written otherwise before
// 2025-11-25, and choices of several did not exist.
func legacyField(field []byte, version string) ([]byte, error) {
	kind := member(field, "type")
	switch {
	case jsonrpc.EqualString(kind, "number"), jsonrpc.EqualString(kind, "integer"):
		return prune(field, func(name string) bool {
			return (name == "default" || name == "minimum" || name == "maximum") && !isWhole(member(field, name))
		}), nil
	case version >= "2025-11-25":
		return field, nil
	case jsonrpc.EqualString(kind, "array"):
		return nil, errUnable
	}
	choices := member(field, "oneOf")
	if !jsonrpc.IsArray(choices) {
		return field, nil
	}
	values, titles := []byte("[]"), []byte("[]")
	for at := range jsonrpc.Elements(choices) {
		choice := at.Of(choices)
		value, title := member(choice, "const"), member(choice, "title")
		if value == nil || title == nil {
			return nil, errUnable
		}
		values = jsonrpc.AppendElements(nil, values, value)
		titles = jsonrpc.AppendElements(nil, titles, title)
	}
	return set(set(without(field, "oneOf"), values, "enum"), titles, "enumNames"), nil
}

// isWhole reports whether a raw number is written as a whole one.
func isWhole(number []byte) bool {
	return len(number) > 0 && !bytes.ContainsAny(number, ".eE")
}
