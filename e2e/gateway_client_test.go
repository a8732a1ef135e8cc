package e2e

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gatewayClients are the clients of the matrix by name; those of the Go SDK connect to a URL as well as to a command.
func gatewayClients() map[string]client {
	all := clients()
	for name, mode := range map[string]string{"go": "auto", "go-legacy": "legacy"} {
		stdio := all[name]
		all[name] = client{name: name, modes: mode, start: func(s *session, target []string) (driver, reply) {
			if strings.HasPrefix(target[0], "http") {
				return startGoHTTP(s, mode, target[0])
			}
			return stdio.start(s, target)
		}}
	}
	return all
}

// startGoHTTP connects the Go SDK's client to a Streamable HTTP endpoint.
func startGoHTTP(s *session, mode, url string) (driver, reply) {
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
	ctx, cancel := context.WithTimeout(context.Background(), 70*time.Second)
	defer cancel()
	from := time.Now()
	transport := &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: &http.Transport{}}}
	var err error
	if d.cs, err = c.Connect(ctx, transport, options); err != nil {
		return d, reply{Error: fail(err)}
	}
	go d.watch()
	hello := map[string]any{"era": "legacy", "ms": time.Since(from).Milliseconds()}
	if init := d.cs.InitializeResult(); init != nil {
		hello["version"], hello["server"] = init.ProtocolVersion, init.ServerInfo
		if init.ProtocolVersion >= "2026" {
			hello["era"] = "modern"
		}
	}
	return d, result(hello, nil)
}
