package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// others are the gateways that peers.sh installs. They have their default settings, except where these do not fit what is
// measured: a port, sessions, no log line for each call, and a restart of the server where that is an option.
func others() []gateway {
	return []gateway{
		{name: "docker/mcp-gateway, long-lived", program: "docker-mcp", many: true,
			settings: "`--static --long-lived --log-calls=false`; the program socat, by which it reaches a server, is replaced by the server: " +
				"no container. A server process for each session that has called",
			setup: dockerSetup("--long-lived", "--log-calls=false")},
		{name: "docker/mcp-gateway", program: "docker-mcp", many: true,
			settings: "the same without `--long-lived`, its default: a server process for each call",
			setup:    dockerSetup("--log-calls=false")},
		{name: "1mcp", program: "1mcp", many: true,
			settings: "`restartOnExit: true` (default: no restart), `--log-level error`. All sessions use one server process",
			setup:    oneMCPSetup},
		{name: "FastMCP proxy", program: "fastmcp", many: true,
			settings: "`fastmcp run mcp.json --log-level ERROR`",
			setup:    fastMCPSetup},
		{name: "mcp-proxy (npm)", program: "mcp-proxy",
			settings: "`--server stream`. All sessions use one server process",
			setup:    words("--host", "127.0.0.1", "--port", "{port}", "--server", "stream", "--", "{server}")},
		{name: "supergateway", program: "supergateway",
			settings: "`--stateful --logLevel none`. A server process for each session, behind a shell",
			setup:    words("--stdio", "{server}", "--outputTransport", "streamableHttp", "--stateful", "--logLevel", "none", "--port", "{port}")},
	}
}

// words is a command line in which {server}, {port} and {config} (a file of the form {"mcpServers": …}) are replaced.
func words(arguments ...string) func(site) (startup, error) {
	return func(s site) (startup, error) {
		config, err := s.mcpServers(nil)
		if err != nil {
			return startup{}, err
		}
		argv := []string{s.program}
		for _, word := range arguments {
			argv = append(argv, strings.NewReplacer("{server}", s.server, "{port}", s.port, "{config}", config).Replace(word))
		}
		return startup{argv: argv}, nil
	}
}

// mcpServers writes the servers in the form that most programs read, each with some keys more.
func (s site) mcpServers(more map[string]any) (string, error) {
	servers := map[string]map[string]any{}
	for _, name := range s.names {
		servers[name] = map[string]any{"command": s.server}
		for key, value := range more {
			servers[name][key] = value
		}
	}
	return s.configJSON("mcp.json", map[string]any{"mcpServers": servers})
}

func (s site) configJSON(name string, value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("write configuration: %w", err)
	}
	return s.config(name, string(text))
}

// dockerSetup is docker/mcp-gateway as in its own image (DOCKER_MCP_IN_CONTAINER: it asks no Docker daemon), with servers that
// run already (--static). It would start socat to reach these; the socat that it finds here is the server.
func dockerSetup(flags ...string) func(site) (startup, error) {
	return func(s site) (startup, error) {
		registry := map[string]any{}
		for _, name := range s.names {
			// Without a prefix it refuses servers whose tools have the same name.
			registry[name] = map[string]any{"type": "server", "image": "none", "title": name, "description": name, "prefix": name}
		}
		if _, err := s.configJSON(".docker/mcp/catalogs/bench.yaml", map[string]any{"registry": registry}); err != nil {
			return startup{}, err
		}
		socat, err := s.config("bin/socat", "#!/bin/sh\nexec '"+s.server+"'\n")
		if err == nil {
			err = os.Chmod(socat, 0o755)
		}
		if err != nil {
			return startup{}, fmt.Errorf("replace socat: %w", err)
		}
		argv := append([]string{s.program, "gateway", "run", "--static", "--catalog", "bench.yaml", "--servers", strings.Join(s.names, ","),
			"--transport", "streaming", "--host", "127.0.0.1", "--port", s.port, "--allow-unauthenticated"}, flags...)
		return startup{argv: argv, env: []string{"DOCKER_MCP_IN_CONTAINER=1", "PATH=" + s.dir + "/bin:" + os.Getenv("PATH")}}, nil
	}
}

func oneMCPSetup(s site) (startup, error) {
	config, err := s.mcpServers(map[string]any{"restartOnExit": true})
	return startup{argv: []string{s.program, "serve", "--config", config, "--host", "127.0.0.1", "--port", s.port, "--log-level", "error"}}, err
}

func fastMCPSetup(s site) (startup, error) {
	config, err := s.mcpServers(nil)
	return startup{argv: []string{s.program, "run", config, "--transport", "http", "--host", "127.0.0.1", "--port", s.port,
		"--no-banner", "--log-level", "ERROR"}}, err
}
