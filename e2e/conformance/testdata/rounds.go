// Package main is the other half of a server: bridge_conformance_test.go builds it together with the Go SDK's
// everything-server and makes that one of the legacy era only. There a tool that needs to know two things one after the
// other asks twice; the SDK 1.8.0 would put only the first of its rounds to a client of that era.
package main

import (
	"context"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// inTwoRounds is the everything-server's multi-round tool as the legacy era has it.
func inTwoRounds(ctx context.Context, req *mcp.CallToolRequest, _ any) (*mcp.CallToolResult, any, error) {
	name, err := ask(ctx, req, "Step 1: What is your name?", "name")
	if err != nil {
		return nil, nil, err
	}
	color, err := ask(ctx, req, "Step 2: What is your favorite color?", "color")
	if err != nil {
		return nil, nil, err
	}
	text := fmt.Sprintf("Multi-round complete: %s likes %s", name, color)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

// ask has the user fill in one field.
func ask(ctx context.Context, req *mcp.CallToolRequest, message, field string) (string, error) {
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{field: {Type: "string"}}, Required: []string{field},
	}})
	if err != nil {
		return "", fmt.Errorf("ask for the %s: %w", field, err)
	}
	value, _ := answer.Content[field].(string)
	return value, nil
}
