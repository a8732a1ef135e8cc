package e2e

import (
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// gatewayClients are the clients of the matrix by name; those of the Go SDK connect to a URL as well as to a command.
func gatewayClients() map[string]client {
	all := clients()
	for name, mode := range map[string]string{"go": "auto", "go-legacy": "legacy"} {
		stdio := all[name]
		all[name] = client{name: name, modes: mode, start: func(s *session, target []string) (driver, reply) {
			if strings.HasPrefix(target[0], "http") {
				return connectGo(s, mode, &mcp.StreamableClientTransport{Endpoint: target[0], HTTPClient: &http.Client{Transport: &http.Transport{}}})
			}
			return stdio.start(s, target)
		}}
	}
	return all
}
