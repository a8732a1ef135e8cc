package mcptest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

// resourceURIs are the resources of every server; the template adds test://item/ID for any ID.
var resourceURIs = []string{"test://counter", "test://static"}

func uriParam(params json.RawMessage) (string, error) {
	var p struct {
		URI string `json:"uri"`
	}
	if err := param(params, &p); err != nil {
		return "", err
	}
	if !slices.Contains(resourceURIs, p.URI) && !strings.HasPrefix(p.URI, "test://item/") {
		return "", rpcError(codeInvalidParams, "Resource not found: %s", p.URI)
	}
	return p.URI, nil
}

func (s *server) resources(c *call) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.Method {
	case "resources/list":
		list := []object{}
		for _, uri := range resourceURIs {
			list = append(list, object{"uri": uri, "name": strings.TrimPrefix(uri, "test://"), "mimeType": "text/plain"})
		}
		return s.cacheable(object{"resources": list}), nil
	case "resources/templates/list":
		return s.cacheable(object{"resourceTemplates": []any{
			object{"uriTemplate": "test://item/{id}", "name": "item", "mimeType": "text/plain"}}}), nil
	}
	uri, err := uriParam(c.Params)
	if err != nil {
		return nil, err
	}
	content := fmt.Sprintf("%s version %d of process %d", uri, s.versions[uri], os.Getpid())
	return s.cacheable(object{"contents": []any{object{"uri": uri, "mimeType": "text/plain", "text": content}}}), nil
}

func (s *server) touch(_ *call, a arguments) (any, error) {
	uri, err := uriParam(encode(object{"uri": a.URI}))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.versions[uri]++
	subscribed := slices.Contains(s.session.Subscriptions, uri)
	version := s.versions[uri]
	s.mu.Unlock()
	s.changed("notifications/resources/updated", object{"uri": uri}, subscribed, func(f filter) bool {
		return slices.Contains(f.URIs, uri)
	})
	return text(fmt.Sprintf("%s is at version %d", uri, version)), nil
}

func (s *server) prompts(c *call) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch c.Method {
	case "prompts/list":
		return s.cacheable(object{"prompts": []any{object{"name": "greet", "description": "Greets somebody",
			"arguments": []any{object{"name": "who", "required": true}}}}}), nil
	case "completion/complete":
		return object{"completion": object{"values": []string{"Ada", "Grace"}, "total": 2, "hasMore": false}}, nil
	}
	var p struct {
		Name      string            `json:"name"`
		Arguments map[string]string `json:"arguments"`
	}
	if err := param(c.Params, &p); err != nil {
		return nil, err
	}
	if p.Name != "greet" {
		return nil, rpcError(codeInvalidParams, "Unknown prompt: %s", p.Name)
	}
	return object{"messages": []any{object{"role": "user",
		"content": object{"type": "text", "text": "Greet " + p.Arguments["who"]}}}}, nil
}
