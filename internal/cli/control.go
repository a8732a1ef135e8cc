package cli

import "github.com/outlive-mcp/outlive/internal/proxy"

func serveControl(p *proxy.Proxy, s *settings, k *sinks) func() { return func() {} }
