package bridge

import (
	"bytes"
	"errors"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// Methods by which a server asks its client for something: requests in the legacy era, parts of a result in the modern
// one.
const (
	askSample = "sampling/createMessage"
	askForm   = "elicitation/create"
	askRoots  = "roots/list"
)

// errUnable says that a client cannot be asked.
var errUnable = errors.New("the client cannot be asked for this")

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
// none. elicitation is the raw id of one by URL.
func legacyAsk(method string, params []byte, can abilities, version string, elicitation []byte) ([]byte, error) {
	needed, known := need(method, params)
	if !known || needed&^can != 0 {
		return nil, errUnable
	}
	params = withoutReserved(params)
	switch {
	case needed == canURL:
		return set(params, elicitation, "elicitationId"), nil
	case needed == canForm:
		return legacyForm(params, version)
	case method == askSample:
		return legacySampling(params, version)
	}
	return params, nil
}

// legacySampling are raw params of sampling/createMessage as version has them. Older ones know no tools and one block in
// each message; several become several messages of the same role.
func legacySampling(params []byte, version string) ([]byte, error) {
	params = mapMember(params, "tools", legacyTool)
	if version >= "2025-11-25" {
		return mapMember(params, "messages", withToolResults), nil
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
	if !able {
		return nil, errUnable
	}
	return params, nil
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
