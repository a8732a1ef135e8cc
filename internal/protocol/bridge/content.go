package bridge

import (
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// legacyContent is a raw content block for a client that settled on version. A kind of block that the version does not
// have becomes text that says the same.
func legacyContent(block []byte, version string) []byte {
	kind := member(block, "type")
	switch {
	case version < "2025-06-18" && jsonrpc.EqualString(kind, "resource_link"):
		name, _ := jsonrpc.Unquote(member(block, "name"))
		uri, _ := jsonrpc.Unquote(member(block, "uri"))
		return instead(block, "Resource "+name+": "+uri)
	case version < "2025-03-26" && jsonrpc.EqualString(kind, "audio"):
		form, _ := jsonrpc.Unquote(member(block, "mimeType"))
		data, _ := jsonrpc.Unquote(member(block, "data"))
		return instead(block, "Audio ("+form+", "+strconv.Itoa(len(data))+
			" characters of base64), which this version of the protocol cannot carry")
	}
	return block
}

// instead is a text block with the annotations of another block.
func instead(block []byte, text string) []byte {
	out := textBlock(text)
	if notes := member(block, "annotations"); notes != nil {
		out = set(out, notes, "annotations")
	}
	return out
}

func textBlock(text string) []byte {
	return append(jsonrpc.AppendQuoted([]byte(`{"type":"text","text":`), text), '}')
}

// withContent replaces the one block that is a message's content.
func withContent(message []byte, f func(block []byte) []byte) []byte {
	was := member(message, "content")
	if now := f(was); string(now) != string(was) {
		return set(message, now, "content")
	}
	return message
}

// singleContent is a raw message or sampling result with one block as its content, for those who know no more: several
// texts become one, of several blocks of other kinds only the first can stay.
func singleContent(message []byte) []byte {
	blocks := member(message, "content")
	if !jsonrpc.IsArray(blocks) {
		return message
	}
	var first []byte
	var texts []string
	for at := range jsonrpc.Elements(blocks) {
		block := at.Of(blocks)
		if first == nil {
			first = block
		}
		if jsonrpc.EqualString(member(block, "type"), "text") {
			text, _ := jsonrpc.Unquote(member(block, "text"))
			texts = append(texts, text)
		}
	}
	if first == nil || len(texts) > 1 {
		first = textBlock(strings.Join(texts, "\n\n"))
	}
	return set(message, first, "content")
}
