package bridge

import (
	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// legacyResult is a modern server's raw result for a legacy client that settled on version.
func legacyResult(m mcp.Method, version string, result []byte) []byte {
	result = withoutReserved(without(result, "resultType", "ttlMs", "cacheScope"))
	switch m {
	case mcp.ToolsList:
		return mapMember(result, "tools", legacyTool)
	case mcp.ToolsCall:
		result = mapMember(result, "content", func(block []byte) []byte { return legacyContent(block, version) })
		return objectAsStructure(result)
	case mcp.PromptsGet:
		return mapMember(result, "messages", func(message []byte) []byte {
			return withContent(message, func(block []byte) []byte { return legacyContent(block, version) })
		})
	}
	return result
}

// objectAsStructure removes a structured result that is not an object, which only modern clients accept. Its text is
// added to the content, unless there is content, which says the same by the protocol.
func objectAsStructure(result []byte) []byte {
	value := member(result, "structuredContent")
	if value == nil || jsonrpc.IsObject(value) {
		return result
	}
	result = without(result, "structuredContent")
	contents := member(result, "content")
	for range jsonrpc.Elements(contents) {
		return result
	}
	return set(result, append(append([]byte{'['}, textBlock(string(value))...), ']'), "content")
}

// modernResult is a legacy server's raw result for a modern client.
func modernResult(m mcp.Method, result []byte) []byte {
	result = without(withoutReserved(result), "resultType", "ttlMs", "cacheScope")
	if m == mcp.ToolsList {
		result = mapMember(result, "tools", modernTool)
	}
	switch m {
	case mcp.ToolsList, mcp.PromptsList, mcp.ResourcesList, mcp.TemplatesList, mcp.ResourcesRead:
		return withMembers(result, []byte(`{"resultType":"complete","ttlMs":0,"cacheScope":"private"}`))
	}
	return withMembers(result, []byte(`{"resultType":"complete"}`))
}
