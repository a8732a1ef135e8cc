package mcptest

import (
	"encoding/json"
	"slices"
	"strings"
)

// legacyVersions are the protocol versions that begin with initialize, oldest first.
var legacyVersions = []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}

// initialize negotiates the version: the requested one if the server supports it, otherwise its newest.
func (s *server) initialize(c *call) (any, error) {
	var p struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Capabilities    json.RawMessage `json:"capabilities"`
		ClientInfo      json.RawMessage `json:"clientInfo"`
	}
	if err := param(c.Params, &p); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.o.legacy() || (s.o.strict && s.session.Era == "modern") {
		return nil, versionError(p.ProtocolVersion, []string{modernVersion})
	}
	if s.o.strict && s.session.Era != "" {
		return nil, &fatalError{why: `duplicate "initialize" received`}
	}
	versions := strings.Split(s.o.versions, ",")
	version := versions[len(versions)-1]
	if slices.Contains(versions, p.ProtocolVersion) {
		version = p.ProtocolVersion
	}
	s.session = session{Era: "legacy", Protocol: version, Client: p.ClientInfo, Capabilities: p.Capabilities}
	result := object{
		"protocolVersion": version,
		"capabilities":    s.capabilities(),
		"serverInfo":      s.info(),
	}
	if s.o.instructions != "" {
		result["instructions"] = s.o.instructions
	}
	return result, nil
}

func (s *server) info() object { return object{"name": s.o.name, "version": "1.0.0"} }

func (s *server) capabilities() object {
	changed := object{}
	if !s.o.noListChanged {
		changed["listChanged"] = true
	}
	resources := object{"subscribe": true}
	for k, v := range changed {
		resources[k] = v
	}
	caps := object{"logging": object{}, "prompts": changed, "resources": resources, "completions": object{}}
	if !s.o.noTools {
		caps["tools"] = changed
	}
	return caps
}

// checkLegacy rejects requests before the handshake; with -strict also before notifications/initialized.
func (s *server) checkLegacy(method string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	ready := s.session.Era == "legacy" && (s.session.Initialized || !s.o.strict)
	switch {
	case method == "ping" || ready:
		return nil
	case s.session.Era == "modern" && s.o.strict:
		return rpcError(codeInvalidParams, "missing _meta: this process speaks %s", modernVersion)
	}
	return rpcError(codeInvalidParams, "Received request before initialization was complete")
}

var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

func (s *server) setLevel(params json.RawMessage) (any, error) {
	var p struct {
		Level string `json:"level"`
	}
	if err := param(params, &p); err != nil {
		return nil, err
	}
	if !slices.Contains(levels, p.Level) {
		return nil, rpcError(codeInvalidParams, "unknown level %q", p.Level)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session.Level = p.Level
	return object{}, nil
}

func (s *server) subscribe(c *call) (any, error) {
	uri, err := uriParam(c.Params)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	subs := slices.DeleteFunc(s.session.Subscriptions, func(u string) bool { return u == uri })
	if c.Method == "resources/subscribe" {
		subs = append(subs, uri)
	}
	s.session.Subscriptions = subs
	return object{}, nil
}

// logMessage sends notifications/message if the client asked for this level: in the session in the legacy era, in the
// request c in the modern one. It reports whether it did.
func (s *server) logMessage(c *call, level, text string) bool {
	wanted := c.logLevel
	if !c.modern {
		s.mu.Lock()
		wanted = s.session.Level
		s.mu.Unlock()
	}
	at := slices.Index(levels, level)
	if at < 0 || (wanted == "" && c.modern) || at < slices.Index(levels, wanted) {
		return false
	}
	s.out.notify("notifications/message", object{"level": level, "logger": s.o.name, "data": text})
	return true
}
