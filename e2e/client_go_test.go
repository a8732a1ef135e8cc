package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goDriver drives the Go SDK's client inside the test process.
type goDriver struct {
	s     *session
	cs    *mcp.ClientSession
	ended chan struct{}

	mu       sync.Mutex
	closing  bool
	hold     chan struct{} // not nil: elicitations wait for it
	cancels  map[int]context.CancelFunc
	progress map[int][]float64
}

func goClient(name, mode string) client {
	return client{name: name, modes: mode, start: func(s *session, argv []string) (driver, reply) { return startGo(s, mode, argv) }}
}

// startGo connects the Go SDK's client to a command.
func startGo(s *session, mode string, argv []string) (driver, reply) {
	foreignIn(s.t, argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = s.env()
	cmd.Dir = s.dir
	stderr, err := os.OpenFile(s.path("stderr.log"), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return &goDriver{s: s}, reply{Error: &failure{Message: err.Error()}}
	}
	defer stderr.Close()
	cmd.Stderr = stderr
	return connectGo(s, mode, &mcp.CommandTransport{Command: cmd})
}

// connectGo connects the Go SDK's client, however it is reached.
func connectGo(s *session, mode string, transport mcp.Transport) (driver, reply) {
	foreign(s.t, "Go SDK client")
	d := &goDriver{s: s, ended: make(chan struct{}), cancels: map[int]context.CancelFunc{}, progress: map[int][]float64{}}
	c := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler:    d.elicit,
		CreateMessageHandler:  d.sample,
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { d.note("notifications/message", r.Params) },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			d.note("notifications/resources/updated", r.Params)
		},
		ToolListChangedHandler: func(_ context.Context, r *mcp.ToolListChangedRequest) {
			d.note("notifications/tools/list_changed", r.Params)
		},
		ProgressNotificationHandler: d.onProgress,
	})
	c.AddRoots(&mcp.Root{URI: "file:///e2e/root", Name: "root"})
	options := &mcp.ClientSessionOptions{}
	if mode == "legacy" {
		options.ProtocolVersion = "2025-11-25"
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.handshakeLimit())
	defer cancel()
	from := time.Now()
	var err error
	if d.cs, err = c.Connect(ctx, transport, options); err != nil {
		return d, reply{Error: fail(err)}
	}
	go d.watch()
	hello := map[string]any{"era": "legacy", "ms": time.Since(from).Milliseconds()}
	if init := d.cs.InitializeResult(); init != nil {
		hello["version"] = init.ProtocolVersion
		hello["server"] = init.ServerInfo
		if init.ProtocolVersion >= "2026" {
			hello["era"] = "modern"
		}
	}
	return d, result(hello, nil)
}

// watch reports the end of the connection when nobody asked for it.
func (d *goDriver) watch() {
	err := d.cs.Wait()
	d.mu.Lock()
	closing := d.closing
	d.mu.Unlock()
	if !closing {
		d.s.record(event{Event: "closed", Message: fmt.Sprint(err)})
	}
	close(d.ended)
}

func (d *goDriver) note(method string, params any) {
	raw, _ := json.Marshal(params)
	d.s.record(event{Event: "notification", Method: method, Params: raw})
}

func (d *goDriver) elicit(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	d.s.record(event{Event: "asked", Method: "elicitation/create", Message: r.Params.Message})
	d.mu.Lock()
	hold := d.hold
	d.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			d.s.record(event{Event: "withdrawn", Method: "elicitation/create"})
			return nil, ctx.Err()
		}
	}
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "yes", "name": "e2e"}}, nil
}

func (d *goDriver) sample(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	d.s.record(event{Event: "asked", Method: "sampling/createMessage"})
	return &mcp.CreateMessageResult{Role: "assistant", Model: "fixed", Content: &mcp.TextContent{Text: "fixed reply"}}, nil
}

func (d *goDriver) onProgress(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
	var n int
	if _, err := fmt.Sscanf(fmt.Sprint(r.Params.ProgressToken), "step-%d", &n); err != nil {
		d.s.record(event{Event: "error", Message: fmt.Sprintf("unknown progress token %v", r.Params.ProgressToken)})
		return
	}
	d.mu.Lock()
	d.progress[n] = append(d.progress[n], r.Params.Progress)
	d.mu.Unlock()
	d.s.record(event{Event: "progress", N: n, Progress: r.Params.Progress})
}

func (d *goDriver) send(s step, done func(reply)) {
	n := s["n"].(int)
	ctx, cancel := context.WithTimeout(context.Background(), inFull(30*time.Second))
	if s["timeout"] == defaultLimit {
		cancel()
		ctx, cancel = context.WithCancel(context.Background())
	}
	d.mu.Lock()
	d.cancels[n] = cancel
	d.mu.Unlock()
	go func() {
		defer cancel()
		out, err := d.run(ctx, n, s)
		r := result(out, err)
		d.mu.Lock()
		r.Progress = append([]float64(nil), d.progress[n]...)
		d.mu.Unlock()
		done(r)
	}()
}

func (d *goDriver) run(ctx context.Context, n int, s step) (any, error) {
	none := map[string]any{}
	uri, _ := s["uri"].(string)
	switch s["op"] {
	case "list":
		return d.cs.ListTools(ctx, nil)
	case "resources":
		return d.cs.ListResources(ctx, nil)
	case "prompts":
		return d.cs.ListPrompts(ctx, nil)
	case "read":
		return d.cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	case "call":
		params := &mcp.CallToolParams{Name: s["tool"].(string), Arguments: s["args"]}
		if args, _ := s["args"].(map[string]any); args == nil {
			params.Arguments = none // the TypeScript SDK's servers refuse null
		}
		if s["progress"] == true {
			params.SetProgressToken(fmt.Sprintf("step-%d", n))
		}
		return d.cs.CallTool(ctx, params)
	case "level":
		return none, d.cs.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(s["level"].(string))})
	case "ping":
		if d.s.modern() {
			return d.cs.ListTools(ctx, nil)
		}
		return none, d.cs.Ping(ctx, nil)
	case "subscribe":
		return none, d.cs.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
	case "unsubscribe":
		return none, d.cs.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: uri})
	case "close":
		return d.close()
	}
	return none, d.control(s)
}

func (d *goDriver) close() (any, error) {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	from := time.Now()
	err := d.cs.Close()
	return map[string]any{"ms": time.Since(from).Milliseconds()}, err
}

// control runs the steps that are about the driver itself.
func (d *goDriver) control(s step) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch s["op"] {
	case "cancel":
		d.cancels[s["target"].(int)]()
	case "hold":
		d.hold = make(chan struct{})
	case "release":
		close(d.hold)
		d.hold = nil
	default:
		return fmt.Errorf("no such step: %v", s["op"])
	}
	return nil
}

func (d *goDriver) exited() <-chan struct{} { return d.ended }

func fail(err error) *failure {
	var wire *jsonrpc.Error
	if errors.As(err, &wire) {
		return &failure{Code: int(wire.Code), Name: "jsonrpc", Message: wire.Message}
	}
	name := "error"
	if errors.Is(err, context.Canceled) {
		name = "cancelled"
	}
	return &failure{Name: name, Message: err.Error()}
}

func result(out any, err error) reply {
	if err != nil {
		return reply{Error: fail(err)}
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return reply{Error: fail(err)}
	}
	return reply{Result: raw}
}
