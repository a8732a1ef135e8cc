package e2e

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// bearer shows a token, if there is one, with each request.
type bearer struct {
	http.RoundTripper
	token []string
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if len(b.token) > 0 {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token[0])
	}
	return b.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections is what http.Client looks for.
func (b bearer) CloseIdleConnections() { b.RoundTripper.(*http.Transport).CloseIdleConnections() }

// gatewayClients are the clients of the matrix by name; those of the Go SDK connect to a URL as well as to a command.
func gatewayClients() map[string]client {
	all := clients()
	for name, mode := range map[string]string{"go": "auto", "go-legacy": "legacy"} {
		stdio := all[name]
		all[name] = client{name: name, modes: mode, start: func(s *session, target []string) (driver, reply) {
			if strings.HasPrefix(target[0], "http") {
				byToken := &http.Client{Transport: bearer{&http.Transport{}, target[1:]}}
				if strings.HasSuffix(target[0], "/sse") {
					return connectGo(s, mode, &mcp.SSEClientTransport{Endpoint: target[0], HTTPClient: byToken})
				}
				return connectGo(s, mode, &mcp.StreamableClientTransport{Endpoint: target[0], HTTPClient: byToken})
			}
			return stdio.start(s, target)
		}}
	}
	return all
}
