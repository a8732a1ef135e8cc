package bridge

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// legacyForm are raw params of an elicitation by form as version has them.
func legacyForm(params []byte, version string) ([]byte, error) {
	fields := member(params, "requestedSchema", "properties")
	var unable error
	now := mapped(fields, func(_ string, field []byte) []byte {
		legacy, err := legacyField(field, version)
		if err != nil {
			unable = err
			return field
		}
		return legacy
	})
	if unable != nil {
		return nil, unable
	}
	if bytes.Equal(now, fields) {
		return params, nil
	}
	return set(params, now, "requestedSchema", "properties"), nil
}

// legacyField is one raw field of a form. Choices with titles were written otherwise before 2025-11-25, and choices of
// several did not exist. A number's limits and default stay as they are: the legacy era's TypeScript schema, the source
// of its specification, has fractions there like the modern one; that its generated JSON Schema says integer is a slip
// of the generator, which neither the official SDKs nor the conformance suite follow.
func legacyField(field []byte, version string) ([]byte, error) {
	switch {
	case version >= "2025-11-25":
		return field, nil
	case jsonrpc.EqualString(member(field, "type"), "array"):
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
