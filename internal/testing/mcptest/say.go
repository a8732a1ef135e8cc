package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

var (
	clientInfo         = object{"name": "mcptest-client", "version": "1.0.0"}
	clientCapabilities = object{"roots": object{"listChanged": true}, "sampling": object{}, "elicitation": object{}}
)

// ToolResult is the result of a tools/call.
type ToolResult struct {
	// Text joins the text contents with newlines.
	Text    string
	IsError bool
	// Raw is the whole result.
	Raw json.RawMessage
}

// Initialize does the legacy handshake: initialize with the given version, then notifications/initialized. It returns
// the raw InitializeResult.
func (c *Client) Initialize(ctx context.Context, version string) (json.RawMessage, error) {
	result, err := c.Call(ctx, "initialize", object{
		"protocolVersion": version, "capabilities": clientCapabilities, "clientInfo": clientInfo})
	if err != nil {
		return nil, err
	}
	return result, c.Notify("notifications/initialized", nil)
}

// Tool calls a tool; nil args are sent as {}.
func (c *Client) Tool(ctx context.Context, name string, args any) (ToolResult, error) {
	raw, err := c.Call(ctx, "tools/call", ToolParams(name, args))
	if err != nil {
		return ToolResult{}, err
	}
	return ParseToolResult(raw)
}

// ToolParams returns the params of a tools/call; nil args become {}.
func ToolParams(name string, args any) any {
	if args == nil {
		args = object{}
	}
	return object{"name": name, "arguments": args}
}

// ParseToolResult decodes the result of a tools/call.
func ParseToolResult(raw json.RawMessage) (ToolResult, error) {
	var r struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return ToolResult{}, fmt.Errorf("read tool result: %w", err)
	}
	var texts []string
	for _, content := range r.Content {
		if content.Type == "text" {
			texts = append(texts, content.Text)
		}
	}
	return ToolResult{Text: strings.Join(texts, "\n"), IsError: r.IsError, Raw: raw}, nil
}

// Identity asks the server, by its tool read, which process answers.
func (c *Client) Identity(ctx context.Context) (Identity, error) {
	var id Identity
	return id, c.toolJSON(ctx, "read", &id)
}

// State asks the server what this client has sent it.
func (c *Client) State(ctx context.Context) (State, error) {
	var s State
	return s, c.toolJSON(ctx, "state", &s)
}

func (c *Client) toolJSON(ctx context.Context, name string, v any) error {
	r, err := c.Tool(ctx, name, nil)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(r.Text), v); err != nil {
		return fmt.Errorf("read the answer of %s: %w", name, err)
	}
	return nil
}

// Tools reads all pages of tools/list and returns the names in order.
func (c *Client) Tools(ctx context.Context) ([]string, error) {
	var names []string
	var cursor string
	for {
		params := object{}
		if cursor != "" {
			params["cursor"] = cursor
		}
		raw, err := c.Call(ctx, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("read tools/list: %w", err)
		}
		for _, t := range page.Tools {
			names = append(names, t.Name)
		}
		if cursor = page.NextCursor; cursor == "" {
			return names, nil
		}
	}
}
