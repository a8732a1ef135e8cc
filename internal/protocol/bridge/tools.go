package bridge

import "github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"

// legacyTool is a modern server's raw tool for a legacy client. Legacy clients accept only object schemas; other output
// schemas are left out.
func legacyTool(tool []byte) []byte {
	if in, ok := legacySchema(member(tool, "inputSchema")); ok {
		tool = set(tool, in, "inputSchema")
	}
	if out, ok := legacySchema(member(tool, "outputSchema")); ok {
		return set(tool, out, "outputSchema")
	}
	return without(tool, "outputSchema")
}

// legacySchema returns a raw JSON Schema as legacy clients can read it: properties are described by objects, not by true
// or false. It reports whether the schema is one of an object.
func legacySchema(schema []byte) ([]byte, bool) {
	if !jsonrpc.EqualString(member(schema, "type"), "object") {
		return schema, false
	}
	properties := member(schema, "properties")
	switch {
	case properties == nil:
	case !jsonrpc.IsObject(properties):
		schema = without(schema, "properties")
	default:
		schema = set(schema, mapped(properties, func(_ string, property []byte) []byte {
			switch {
			case jsonrpc.IsObject(property):
				return property
			case string(property) == "false":
				return []byte(`{"not":{}}`)
			}
			return []byte(`{}`)
		}), "properties")
	}
	if required := member(schema, "required"); required != nil && !isStrings(required) {
		schema = without(schema, "required")
	}
	return schema, true
}

func isStrings(array []byte) bool {
	if !jsonrpc.IsArray(array) {
		return false
	}
	for at := range jsonrpc.Elements(array) {
		if !jsonrpc.IsString(at.Of(array)) {
			return false
		}
	}
	return true
}

// modernTool is a legacy server's raw tool for a modern client; none if it runs only as a task, which the client cannot
// call.
func modernTool(tool []byte) []byte {
	execution := member(tool, "execution")
	if jsonrpc.EqualString(member(execution, "taskSupport"), "required") {
		return nil
	}
	return without(tool, "execution")
}
