package session

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Session is the state of a client's connection that outlives its servers.
type Session struct {
	Era mcp.Era // era of the client's last message that determines it

	InitParams  []byte // raw params of initialize; nil before it
	Version     string // the negotiated protocol version; "" before the answer
	InitResult  []byte // raw result of initialize from the server; nil before the answer
	Initialized bool   // the client has sent notifications/initialized

	Meta []byte // modern: raw _meta of a request, without its progress token

	logLevel []byte         // raw params of the last logging/setLevel that succeeded
	subs     []subscription // in the order in which they were made
	listens  []*Listen
	walks    [mcp.Lists]walk
}

type subscription struct {
	uri    string
	params []byte // raw params of resources/subscribe
}

// Listen is one open subscriptions/listen request of a modern client.
type Listen struct {
	ID     []byte // raw
	Line   []byte // the request as it was received
	Filter []byte // raw params.notifications: what the client asked for
	Acked  []byte // raw notifications of the acknowledgement that the client got; nil before it
}

// walk is the reading of a list, page by page.
type walk struct {
	reading mcp.Catalog // pages read so far
	seen    mcp.Catalog // the last complete reading; nil if there was none
}

// Reset removes everything: the client has sent another initialize.
func (s *Session) Reset() { *s = Session{} }

// Answered reports whether the client has completed the handshake of the legacy era.
func (s *Session) Answered() bool { return s.InitResult != nil }

// ClientName returns the name and version in the client's clientInfo; empty if there are none.
func (s *Session) ClientName() (name, version string) {
	info := jsonrpc.Find(s.InitParams, "clientInfo").Of(s.InitParams)
	if info == nil {
		info = jsonrpc.Find(s.Meta, mcp.MetaClientInfo).Of(s.Meta)
	}
	name, _ = jsonrpc.Unquote(jsonrpc.Find(info, "name").Of(info))
	version, _ = jsonrpc.Unquote(jsonrpc.Find(info, "version").Of(info))
	return name, version
}

// KeepMeta stores what of the _meta of a modern request is for requests that outlive sends itself.
func (s *Session) KeepMeta(meta []byte) {
	if s.Meta != nil || !jsonrpc.Find(meta, mcp.MetaProtocolVersion).Present() {
		return
	}
	s.Meta = mcp.OwnMeta(meta)
}

// SetLogLevel stores the params of a logging/setLevel that succeeded.
func (s *Session) SetLogLevel(params []byte) { s.logLevel = bytes.Clone(params) }

// Subscribe stores the params of a resources/subscribe that succeeded.
func (s *Session) Subscribe(params []byte) {
	uri, ok := jsonrpc.Unquote(jsonrpc.Find(params, "uri").Of(params))
	if !ok {
		return
	}
	s.Unsubscribe(params)
	s.subs = append(s.subs, subscription{uri: uri, params: bytes.Clone(params)})
}

// Unsubscribe removes the subscription named in the params.
func (s *Session) Unsubscribe(params []byte) {
	uri, _ := jsonrpc.Unquote(jsonrpc.Find(params, "uri").Of(params))
	s.subs = slices.DeleteFunc(s.subs, func(sub subscription) bool { return sub.uri == uri })
}

// Subscribed returns the raw JSON string of each subscribed URI, in order.
func (s *Session) Subscribed() [][]byte {
	out := make([][]byte, len(s.subs))
	for i, sub := range s.subs {
		out[i] = jsonrpc.AppendQuoted(nil, sub.uri)
	}
	return out
}

// Setting is a request that brings a new process to its predecessor's state.
type Setting struct {
	Method mcp.Method
	Params []byte
}

// Settings returns the requests for a new process of the legacy era after its handshake, in this order: the log
// level, then the subscriptions.
func (s *Session) Settings() []Setting {
	var out []Setting
	if s.logLevel != nil {
		out = append(out, Setting{mcp.SetLevel, s.logLevel})
	}
	for _, sub := range s.subs {
		out = append(out, Setting{mcp.Subscribe, sub.params})
	}
	return out
}
