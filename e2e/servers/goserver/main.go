// Command goserver is the Go SDK server of the end-to-end tests: the same tools and traces as py_server.py.
//
//	-era legacy     speak nothing newer than 2025-11-25
//	-era both       the SDK's default (2024-11-05 … 2026-07-28)
//	-probe exits    a legacy server that dies of any request before initialize (picky.go)
//	-probe silent   one that never answers such a request
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const item = "test://item"

var readOnly = &mcp.ToolAnnotations{ReadOnlyHint: true}

// appendLine leaves a trace for the tests. Without their directory there is none to leave: the server also serves to be measured, and
// its files would stay in whatever folder that is done in.
func appendLine(name, line string) {
	dir := os.Getenv("E2E_DIR")
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		log.Fatalf("append to %s: %v", name, err)
	}
	defer f.Close()
	fmt.Fprintln(f, line)
}

func trace(tool, value string) {
	appendLine("trace", fmt.Sprintf("%d %d %s %s", time.Now().UnixMilli(), os.Getpid(), tool, value))
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

type timedIn struct {
	Value string `json:"value"`
	MS    int    `json:"ms,omitempty"`
}

// timed adds a tool that traces its start and its end around a pause.
func timed(s *mcp.Server, name string, a *mcp.ToolAnnotations) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: a}, func(_ context.Context, _ *mcp.CallToolRequest, in timedIn) (*mcp.CallToolResult, any, error) {
		trace(name, in.Value)
		time.Sleep(time.Duration(in.MS) * time.Millisecond)
		trace(name+"-done", in.Value)
		return text(fmt.Sprintf("%s %s %d", name, in.Value, os.Getpid())), nil, nil
	})
}

type slowIn struct {
	Value string `json:"value"`
	Steps int    `json:"steps"`
	MS    int    `json:"ms"`
}

func slow(ctx context.Context, req *mcp.CallToolRequest, in slowIn) (*mcp.CallToolResult, any, error) {
	trace("slow", in.Value)
	for step := 1; step <= in.Steps; step++ {
		select {
		case <-ctx.Done():
			trace("slow-cancelled", in.Value)
			return nil, nil, ctx.Err()
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
		}
		if token := req.Params.GetProgressToken(); token != nil {
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(step), Total: float64(in.Steps)})
			if ctx.Err() != nil { // cancelled just now: its error says nothing else
				trace("slow-cancelled", in.Value)
				return nil, nil, ctx.Err()
			}
			if err != nil {
				return nil, nil, err
			}
		}
		trace("slow-step", fmt.Sprintf("%s/%d", in.Value, step))
	}
	time.Sleep(100 * time.Millisecond) // some clients handle an answer before the notification that came just before it
	return text(fmt.Sprintf("slow %s %d", in.Value, os.Getpid())), nil, nil
}

type questionIn struct {
	Question string `json:"question"`
}

func elicit(_ context.Context, req *mcp.CallToolRequest, in questionIn) (*mcp.CallToolResult, any, error) {
	if r, ok := req.Params.InputResponses["answer"].(*mcp.ElicitResult); ok && r != nil {
		trace("elicit", in.Question)
		return text(fmt.Sprintf("elicited %v", r.Content["answer"])), nil, nil
	}
	trace("elicit-asked", in.Question)
	schema := &jsonschema.Schema{Type: "object", Required: []string{"answer"}, Properties: map[string]*jsonschema.Schema{"answer": {Type: "string"}}}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"answer": &mcp.ElicitParams{Message: in.Question, RequestedSchema: schema}}}, nil, nil
}

type textIn struct {
	Text string `json:"text"`
}

func sample(_ context.Context, req *mcp.CallToolRequest, in textIn) (*mcp.CallToolResult, any, error) {
	if r, ok := req.Params.InputResponses["reply"].(*mcp.CreateMessageWithToolsResult); ok && r != nil && len(r.Content) > 0 {
		trace("sample", in.Text)
		reply, _ := r.Content[0].(*mcp.TextContent)
		return text("sampled " + reply.Text), nil, nil
	}
	trace("sample-asked", in.Text)
	message := &mcp.SamplingMessage{Role: "user", Content: &mcp.TextContent{Text: in.Text}}
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"reply": &mcp.CreateMessageParams{Messages: []*mcp.SamplingMessage{message}, MaxTokens: 16}}}, nil, nil
}

func roots(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
	if r, ok := req.Params.InputResponses["roots"].(*mcp.ListRootsResult); ok && r != nil {
		trace("roots", "-")
		var uris []string
		for _, root := range r.Roots {
			uris = append(uris, root.URI)
		}
		return text("roots " + strings.Join(uris, " ")), nil, nil
	}
	trace("roots-asked", "-")
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"roots": &mcp.ListRootsParams{}}}, nil, nil
}

type codeIn struct {
	Code int `json:"code"`
}

func leave(_ context.Context, _ *mcp.CallToolRequest, in codeIn) (*mcp.CallToolResult, any, error) {
	time.AfterFunc(500*time.Millisecond, func() { os.Exit(in.Code) })
	return text(fmt.Sprintf("leaving %d", in.Code)), nil, nil
}

func die(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	trace("die", "-")
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func marker(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	fmt.Fprintln(os.Stderr, "__MCP_RESTART_REQUEST__")
	return text("restart requested"), nil, nil
}

// counted is how often this process was asked to count.
var counted atomic.Int64

// count is a tool with a state that is in the memory of its process only.
func count(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
	return text(fmt.Sprint(counted.Add(1))), nil, nil
}

func addTools(s *mcp.Server) {
	timed(s, "bump", nil)
	timed(s, "look", readOnly)
	notDestructive := false
	timed(s, "idem", &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &notDestructive})
	mcp.AddTool(s, &mcp.Tool{Name: "echo", Annotations: readOnly}, func(_ context.Context, _ *mcp.CallToolRequest, in textIn) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "slow", Annotations: readOnly}, slow)
	mcp.AddTool(s, &mcp.Tool{Name: "fail", Annotations: readOnly}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("failed on purpose")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "pid", Annotations: readOnly}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(os.Getpid())), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "count"}, count)
	mcp.AddTool(s, &mcp.Tool{Name: "elicit"}, elicit)
	mcp.AddTool(s, &mcp.Tool{Name: "sample"}, sample)
	mcp.AddTool(s, &mcp.Tool{Name: "roots"}, roots)
	mcp.AddTool(s, &mcp.Tool{Name: "leave"}, leave)
	mcp.AddTool(s, &mcp.Tool{Name: "die"}, die)
	mcp.AddTool(s, &mcp.Tool{Name: "marker"}, marker)
	mcp.AddTool(s, &mcp.Tool{Name: "touch", Annotations: readOnly}, func(ctx context.Context, _ *mcp.CallToolRequest, in struct {
		URI string `json:"uri,omitempty"`
	}) (*mcp.CallToolResult, any, error) {
		if in.URI == "" {
			in.URI = item
		}
		return text("touched"), nil, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: in.URI})
	})
	mcp.AddTool(s, &mcp.Tool{Name: "log", Annotations: readOnly}, func(ctx context.Context, req *mcp.CallToolRequest, in textIn) (*mcp.CallToolResult, any, error) {
		return text("logged"), nil, req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: in.Text})
	})
}

// newTool is what a server has more after it was changed and started again: a tool, when the tests' directory holds this file.
const newTool = "newtool"

func addNewTool(s *mcp.Server) {
	if _, err := os.Stat(filepath.Join(os.Getenv("E2E_DIR"), newTool)); os.Getenv("E2E_DIR") != "" && err == nil {
		timed(s, newTool, readOnly)
	}
}

func main() {
	// A collection of Go 1.26.8 now and then misses the goroutine that is just entering read(2) on stdin. Everything then waits for
	// more input, and outlive would be blamed for it (e2e/storm_stuck_test.go). So there is none below this limit.
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(512 << 20)
	era := flag.String("era", "both", "legacy or both")
	probe := flag.String("probe", "", "exits or silent: how a request before initialize is taken")
	flag.Parse()
	appendLine("pids", fmt.Sprint(os.Getpid()))
	options := &mcp.ServerOptions{
		SubscribeHandler: func(_ context.Context, r *mcp.SubscribeRequest) error {
			trace("subscribe", r.Params.URI)
			return nil
		},
		UnsubscribeHandler: func(_ context.Context, r *mcp.UnsubscribeRequest) error {
			trace("unsubscribe", r.Params.URI)
			return nil
		},
	}
	if *era == "legacy" || *probe != "" {
		options.SupportedProtocolVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "go-server", Version: "1.0.0"}, options)
	addTools(s)
	addNewTool(s)
	s.AddResource(&mcp.Resource{URI: item, Name: "item", MIMEType: "text/plain"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: fmt.Sprintf("item %d", os.Getpid())}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "hello", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		message := &mcp.PromptMessage{Role: "user", Content: &mcp.TextContent{Text: "hello " + r.Params.Arguments["name"]}}
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{message}}, nil
	})
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "logging/setLevel" {
				raw, _ := json.Marshal(req.GetParams())
				var p struct{ Level string }
				_ = json.Unmarshal(raw, &p)
				trace("level", p.Level)
			}
			return next(ctx, method, req)
		}
	})
	var transport mcp.Transport = &mcp.StdioTransport{}
	if *probe != "" {
		transport = &mcp.IOTransport{Reader: picky(os.Stdin, *probe), Writer: os.Stdout}
	}
	if err := s.Run(context.Background(), transport); err != nil {
		log.Print(err)
	}
}
