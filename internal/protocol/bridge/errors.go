package bridge

import (
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// expired is the text with which the official SDKs refuse a state they do not know.
const expired = "Invalid or expired requestState"

// withCode returns a raw error with another code.
func withCode(err []byte, code int) []byte {
	return set(err, strconv.AppendInt(nil, int64(code), 10), "code")
}

// legacyError is a modern server's raw error for a legacy client. The codes of that era mean nothing there, or something
// else; the text says what happened.
func legacyError(err []byte) []byte {
	if code := jsonrpc.ErrorCode(err); code == mcp.CodeCapability || code == mcp.CodeVersion {
		return withCode(err, jsonrpc.InvalidRequest)
	}
	return err
}

// modernError is a legacy server's raw error for a modern client.
func modernError(m mcp.Method, err []byte) []byte {
	if m == mcp.ResourcesRead && jsonrpc.ErrorCode(err) == mcp.CodeNoResource {
		return withCode(err, jsonrpc.InvalidParams)
	}
	return err
}

// failed is the answer to a request that came to nothing: a tool's is a result, so that the model reads it.
func failed(m mcp.Method, era mcp.Era, id []byte, text string) []byte {
	if m == mcp.ToolsCall {
		return jsonrpc.AppendResult(nil, id, mcp.ToolText(text, true, era, nil))
	}
	return jsonrpc.AppendError(nil, id, jsonrpc.InternalError, text, nil)
}

// notFound refuses a method that the client's era, or the bridge, does not have.
func notFound(id []byte) []byte {
	return jsonrpc.AppendError(nil, id, jsonrpc.MethodNotFound, "Method not found", nil)
}
