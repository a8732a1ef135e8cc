package main

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// scenario is what a client does while the suite looks on.
type scenario struct {
	options *mcp.ClientOptions
	steps   func(ctx context.Context, session *mcp.ClientSession, args given) error
}

// scenarioOf is what is done for a scenario of the suite. Those that are not named only connect and look.
func scenarioOf(name string) scenario {
	switch {
	case strings.HasPrefix(name, "auth/"):
		return scenario{steps: call("test-tool", map[string]any{})}
	case name == "tools_call":
		return scenario{steps: call("add_numbers", map[string]any{"a": 5, "b": 3})}
	case name == "elicitation-sep1034-client-defaults":
		return scenario{accepting(map[string]any{}), call("test_client_elicitation_defaults", map[string]any{})}
	case name == "sse-retry":
		return scenario{steps: call("test_reconnection", map[string]any{})}
	case name == "sep-2322-client-request-state":
		options := accepting(map[string]any{"confirmed": true})
		options.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}
		return scenario{options, rounds}
	case name == "http-standard-headers":
		return scenario{steps: everyVerb}
	case name == "http-custom-headers":
		return scenario{steps: givenCalls}
	case name == "http-invalid-tool-headers":
		return scenario{steps: everyTool}
	case name == "json-schema-2020-12-preservation":
		return scenario{steps: echoSchema}
	}
	return scenario{steps: look}
}

// accepting accepts every question of the server with the same answer.
func accepting(content map[string]any) *mcp.ClientOptions {
	return &mcp.ClientOptions{ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: content}, nil
	}}
}

func look(ctx context.Context, session *mcp.ClientSession, _ given) error {
	_, err := session.ListTools(ctx, nil)
	return err
}

// call looks, then calls one tool.
func call(tool string, args map[string]any) func(context.Context, *mcp.ClientSession, given) error {
	return func(ctx context.Context, session *mcp.ClientSession, _ given) error {
		if _, err := session.ListTools(ctx, nil); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			return fmt.Errorf("call %s: %w", tool, err)
		}
		if result.IsError && len(result.Content) > 0 {
			if text, ok := result.Content[0].(*mcp.TextContent); ok {
				return fmt.Errorf("call %s: %s", tool, text.Text)
			}
		}
		return nil
	}
}

// rounds calls tools that answer with questions. Some of them answer wrongly on purpose; then the call may fail.
func rounds(ctx context.Context, session *mcp.ClientSession, _ given) error {
	for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}); err != nil {
			log.Printf("call %s: %v", tool, err)
		}
	}
	return nil
}

// everyVerb calls, reads and gets once each. The suite looks at the requests, not at what comes of them.
func everyVerb(ctx context.Context, session *mcp.ClientSession, _ given) error {
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("list tools: %w", err)
	}
	for _, tool := range tools.Tools[:min(1, len(tools.Tools))] {
		_, _ = session.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name, Arguments: map[string]any{}})
	}
	if list, err := session.ListResources(ctx, nil); err == nil && len(list.Resources) > 0 {
		_, _ = session.ReadResource(ctx, &mcp.ReadResourceParams{URI: list.Resources[0].URI})
	}
	if list, err := session.ListPrompts(ctx, nil); err == nil && len(list.Prompts) > 0 {
		_, _ = session.GetPrompt(ctx, &mcp.GetPromptParams{Name: list.Prompts[0].Name, Arguments: map[string]string{}})
	}
	return nil
}

// givenCalls makes the calls that the suite asks for.
func givenCalls(ctx context.Context, session *mcp.ClientSession, args given) error {
	if err := look(ctx, session, args); err != nil {
		return err
	}
	for _, c := range args.ToolCalls {
		if c.Arguments == nil {
			c.Arguments = map[string]any{}
		}
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: c.Name, Arguments: c.Arguments}); err != nil {
			log.Printf("call %s: %v", c.Name, err)
		}
	}
	return nil
}

// everyTool calls all that the list has: tools with bad headers must not be in it.
func everyTool(ctx context.Context, session *mcp.ClientSession, _ given) error {
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, tool := range tools.Tools {
		if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool.Name, Arguments: map[string]any{"region": "us-west1"}}); err != nil {
			log.Printf("call %s: %v", tool.Name, err)
		}
	}
	return nil
}

// echoSchema sends a tool's schema back, so that the suite sees what has become of it on the way.
func echoSchema(ctx context.Context, session *mcp.ClientSession, _ given) error {
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	for _, tool := range tools.Tools {
		if tool.Name == "json_schema_2020_12_tool" {
			_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "json_schema_echo", Arguments: map[string]any{"schema": tool.InputSchema}})
			return err
		}
	}
	return fmt.Errorf("the list of %d tools lacks json_schema_2020_12_tool", len(tools.Tools))
}
