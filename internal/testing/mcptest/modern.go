package mcptest

import (
	"encoding/json"
	"maps"
	"slices"
)

// modernVersion is the first version without a handshake.
const modernVersion = "2026-07-28"

// Keys of _meta in the modern era.
const (
	metaVersion        = "io.modelcontextprotocol/protocolVersion"
	metaClientInfo     = "io.modelcontextprotocol/clientInfo"
	metaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel       = "io.modelcontextprotocol/logLevel"
	metaServerInfo     = "io.modelcontextprotocol/serverInfo"
	metaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
)

// listen is one open subscriptions/listen stream.
type listen struct {
	id     json.RawMessage
	filter filter
}

type filter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// requestMeta returns the request's _meta, and whether it has a protocol version, which makes it a modern request.
func requestMeta(params json.RawMessage) (map[string]json.RawMessage, bool) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if len(params) == 0 || json.Unmarshal(params, &p) != nil {
		return nil, false
	}
	_, ok := p.Meta[metaVersion]
	return p.Meta, ok
}

func versionError(requested string, supported []string) error {
	return &RPCError{Code: codeVersion, Message: "Unsupported protocol version",
		Data: encode(object{"supported": supported, "requested": requested})}
}

// enterModern checks the request's envelope and sets the era.
func (s *server) enterModern(c *call, meta map[string]json.RawMessage) error {
	var version string
	_ = json.Unmarshal(meta[metaVersion], &version)
	for _, key := range []string{metaVersion, metaClientInfo, metaCapabilities} {
		if meta[key] == nil {
			return rpcError(codeInvalidParams, "missing _meta %q", key)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.session.Era == "legacy" && (s.o.strict || !s.o.modern()):
		return rpcError(codeInvalidRequest, "enveloped request on a legacy connection")
	case !s.o.modern(), version != modernVersion:
		return versionError(version, s.supported())
	case s.session.Era == "":
		s.session.Era = "modern"
	}
	if s.session.Era == "modern" {
		s.session.Protocol, s.session.Client, s.session.Capabilities = version, meta[metaClientInfo], meta[metaCapabilities]
	}
	c.modern = true
	_ = json.Unmarshal(meta[metaLogLevel], &c.logLevel)
	return nil
}

func (s *server) supported() []string {
	if !s.o.modern() {
		return legacyVersions
	}
	if !s.o.legacy() {
		return []string{modernVersion}
	}
	return append([]string{modernVersion}, legacyVersions...)
}

func (s *server) discover() any {
	result := object{
		"resultType": "complete", "supportedVersions": s.supported(), "capabilities": s.capabilities(),
		"ttlMs": 0, "cacheScope": "private", "_meta": object{metaServerInfo: s.info()},
	}
	if s.o.instructions != "" {
		result["instructions"] = s.o.instructions
	}
	return result
}

// modernResult adds the members of every result in the modern era.
func (s *server) modernResult(result any) any {
	r, ok := result.(object)
	if !ok {
		return result
	}
	r = maps.Clone(r)
	if r["resultType"] == nil {
		r["resultType"] = "complete"
	}
	if r["_meta"] == nil {
		r["_meta"] = object{metaServerInfo: s.info()}
	}
	return r
}

// listen opens a stream: the acknowledgement is its first message; the request is answered when the server ends the
// stream.
func (s *server) listen(c *call) (any, error) {
	var p struct {
		Notifications *filter `json:"notifications"`
	}
	if err := param(c.Params, &p); err != nil {
		return nil, err
	}
	if p.Notifications == nil {
		return nil, rpcError(codeInvalidParams, "missing notifications")
	}
	s.mu.Lock()
	s.listens = append(s.listens, listen{id: c.ID, filter: *p.Notifications})
	s.mu.Unlock()
	s.out.notify("notifications/subscriptions/acknowledged", object{
		"_meta": object{metaSubscriptionID: c.ID}, "notifications": p.Notifications})
	return nil, errDrop
}

// endListen removes a stream that the client cancelled. It requires mu.
func (s *server) endListen(id json.RawMessage) {
	s.listens = slices.DeleteFunc(s.listens, func(l listen) bool { return string(l.id) == string(id) })
}

// endListens ends every stream on the server's side.
func (s *server) endListens() int {
	s.mu.Lock()
	ended := s.listens
	s.listens = nil
	s.mu.Unlock()
	for _, l := range ended {
		s.out.notify("notifications/cancelled", object{"requestId": l.id, "reason": "server shutting down"})
		s.out.line(s.out.answer(l.id, "result", object{"resultType": "complete", "_meta": object{metaSubscriptionID: l.id}}))
	}
	return len(ended)
}

// changed sends a notification: in the legacy era if legacy is set, in the modern one on each stream for which want
// is true.
func (s *server) changed(method string, params object, legacy bool, want func(filter) bool) {
	s.mu.Lock()
	legacy = legacy && s.session.Era == "legacy"
	streams := slices.Clone(s.listens)
	s.mu.Unlock()
	if legacy {
		s.out.notify(method, params)
	}
	for _, l := range streams {
		if want(l.filter) {
			p := maps.Clone(params)
			p["_meta"] = object{metaSubscriptionID: l.id}
			s.out.notify(method, p)
		}
	}
}
