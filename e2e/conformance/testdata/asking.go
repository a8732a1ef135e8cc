// Package main is half of a server: bridge_conformance_test.go builds it together with the Go SDK's everything-server
// and makes that one of 2026-07-28 only. Its tools ask their client with requests of their own, which such a server
// cannot send: here the same questions become input_required results. And the SDK 1.8.0 answers initialize whatever
// versions it is told to speak: here it is refused.
package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// question is why a tool cannot go on yet: it needs an answer of its client.
type question struct{ ask mcp.InputRequest }

func (question) Error() string { return "the client was not asked yet" }

const asked = "asked"

// elicit is the user's answer, or the question as an error.
func elicit(req *mcp.CallToolRequest, params *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	if answer, ok := req.Params.InputResponses[asked].(*mcp.ElicitResult); ok && answer != nil {
		return answer, nil
	}
	return nil, question{params}
}

// sample is the model's answer, or the question as an error.
func sample(req *mcp.CallToolRequest, params *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	answer, ok := req.Params.InputResponses[asked].(*mcp.CreateMessageWithToolsResult)
	if !ok || answer == nil || len(answer.Content) == 0 {
		return nil, question{params}
	}
	return &mcp.CreateMessageResult{Content: answer.Content[0], Model: answer.Model, Role: answer.Role}, nil
}

// asking lets a tool end with its question.
func asking[In any](tool mcp.ToolHandlerFor[In, any]) mcp.ToolHandlerFor[In, any] {
	return func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, out, err := tool(ctx, req, in)
		var q question
		if errors.As(err, &q) {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{asked: q.ask}}, nil, nil
		}
		return result, out, err
	}
}

// refuse answers initialize as the revision wants it: with an error that names the versions spoken.
func refuse(server *mcp.Server) {
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "initialize" {
				data := json.RawMessage(`{"supported": ["2026-07-28"]}`)
				return nil, &jsonrpc.Error{Code: -32022, Message: "Unsupported protocol version", Data: data}
			}
			return next(ctx, method, req)
		}
	})
}
