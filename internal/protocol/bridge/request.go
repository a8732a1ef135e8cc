package bridge

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// Methods by which a server asks its client for something: requests in the legacy era, parts of a result in the modern
// one.
const (
	askSample = "sampling/createMessage"
	askForm   = "elicitation/create"
	askRoots  = "roots/list"
)

// need returns the ability that a question needs.
func need(method string, params []byte) (abilities, bool) {
	switch method {
	case askRoots:
		return canRoots, true
	case askForm:
		if jsonrpc.EqualString(member(params, "mode"), "url") {
			return canURL, true
		}
		return canForm, true
	case askSample:
		if member(params, "tools") != nil || member(params, "toolChoice") != nil {
			return canSample | canSampleTools, true
		}
		return canSample, true
	}
	return 0, false
}

// legacyAsk are the raw params with which a client that settled on version is asked what a modern server wants; nil for
// none. It reports whether the client can be asked. elicitation is the raw id of one by URL.
func legacyAsk(method string, params []byte, can abilities, version string, elicitation []byte) ([]byte, bool) {
	needed, known := need(method, params)
	if !known || needed&^can != 0 {
		return nil, false
	}
	params = withoutReserved(params)
	switch {
	case needed == canURL:
		return set(params, elicitation, "elicitationId"), true
	case needed == canForm:
		return legacyForm(params, version)
	case method == askSample:
		return legacySampling(params, version)
	}
	return params, true
}

// legacySampling are raw params of sampling/createMessage as version has them. Older ones know no tools and one block in
// each message; several become several messages of the same role.
func legacySampling(params []byte, version string) ([]byte, bool) {
	params = mapMember(params, "tools", legacyTool)
	if version >= "2025-11-25" {
		return mapMember(params, "messages", withToolResults), true
	}
	able := true
	params = mapMember(params, "messages", func(message []byte) []byte {
		blocks := member(message, "content")
		if !jsonrpc.IsArray(blocks) {
			able = able && !ofTools(blocks)
			return withContent(message, func(block []byte) []byte { return legacyContent(block, version) })
		}
		var out [][]byte
		for at := range jsonrpc.Elements(blocks) {
			able = able && !ofTools(at.Of(blocks))
			out = append(out, set(message, legacyContent(at.Of(blocks), version), "content"))
		}
		return bytes.Join(out, []byte(","))
	})
	return params, able
}

// ofTools reports whether a raw block is part of the use of a tool.
func ofTools(block []byte) bool {
	kind := member(block, "type")
	return jsonrpc.EqualString(kind, "tool_use") || jsonrpc.EqualString(kind, "tool_result")
}

// withToolResults is a raw message, or a result of sampling, whose tool results are as the legacy era has them.
func withToolResults(message []byte) []byte {
	if jsonrpc.IsArray(member(message, "content")) {
		return mapMember(message, "content", toolResult)
	}
	return withContent(message, toolResult)
}

// toolResult takes a structured result that is not an object out of a block.
func toolResult(block []byte) []byte {
	if v := member(block, "structuredContent"); v != nil && !jsonrpc.IsObject(v) && ofTools(block) {
		return without(block, "structuredContent")
	}
	return block
}

// legacyForm are raw params of an elicitation by form as version has them.
func legacyForm(params []byte, version string) ([]byte, bool) {
	fields := member(params, "requestedSchema", "properties")
	able := true
	now := mapped(fields, func(_ string, field []byte) []byte {
		legacy, ok := legacyField(field, version)
		able = able && ok
		return legacy
	})
	if bytes.Equal(now, fields) {
		return params, able
	}
	return set(params, now, "requestedSchema", "properties"), able
}

// legacyField is one raw field of a form. Choices with titles were written otherwise before 2025-11-25, and choices of
// several did not exist. A number's limits and default stay as they are: the legacy era's TypeScript schema, the source
// of its specification, has fractions there like the modern one; that its generated JSON Schema says integer is a slip
// of the generator, which neither the official SDKs nor the conformance suite follow.
func legacyField(field []byte, version string) ([]byte, bool) {
	switch {
	case version >= "2025-11-25":
		return field, true
	case jsonrpc.EqualString(member(field, "type"), "array"):
		return nil, false
	}
	choices := member(field, "oneOf")
	if !jsonrpc.IsArray(choices) {
		return field, true
	}
	values, titles := []byte("[]"), []byte("[]")
	for at := range jsonrpc.Elements(choices) {
		choice := at.Of(choices)
		value, title := member(choice, "const"), member(choice, "title")
		if value == nil || title == nil {
			return nil, false
		}
		values = jsonrpc.AppendElements(nil, values, value)
		titles = jsonrpc.AppendElements(nil, titles, title)
	}
	return set(set(without(field, "oneOf"), values, "enum"), titles, "enumNames"), true
}

// modernAsk is the raw InputRequest that stands for what a legacy server asks; raw params may be nil.
func modernAsk(method string, params []byte) []byte {
	out := jsonrpc.AppendQuoted([]byte(`{"method":`), method)
	if params != nil {
		params = without(withoutReserved(params, "progressToken"), "task")
		if method == askForm {
			params = without(params, "elicitationId")
		}
		out = append(append(out, `,"params":`...), params...)
	} else {
		out = append(out, `,"params":{}`...) // the Go SDK's client (1.8.0) cannot decode one without
	}
	return append(out, '}')
}

// legacyAnswer is a modern client's raw InputResponse as the result for a server that settled on version.
func legacyAnswer(method, version string, response []byte) []byte {
	response = withoutReserved(without(response, "resultType"))
	switch {
	case method != askSample:
		return response
	case version < "2025-11-25":
		return singleContent(response)
	}
	return withToolResults(response)
}
