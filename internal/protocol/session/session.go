package session

import (
	"bytes"
	"slices"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// Session is the state of a client's connection that outlives its servers. A [Record] has it as it is.
type Session struct {
	Era mcp.Era `json:"era"` // era of the client's last message that determines it

	InitParams  []byte `json:"initialize,omitempty"`        // raw params of initialize; nil before it
	Version     string `json:"protocol_version,omitempty"`  // the negotiated protocol version; "" before the answer
	InitResult  []byte `json:"initialize_result,omitempty"` // raw result of initialize from the server; nil before the answer
	Initialized bool   `json:"initialized,omitempty"`       // the client has sent notifications/initialized

	Meta []byte `json:"meta,omitempty"` // modern: raw _meta of a request, without its progress token

	LogLevel      []byte    `json:"log_level,omitempty"`  // raw params of the last logging/setLevel that succeeded
	Subscriptions [][]byte  `json:"subscribed,omitempty"` // raw params of each resources/subscribe, in the order in which they were made
	Listens       []*Listen `json:"listens,omitempty"`    // of a record, or on the way to another era; in order

	Reading [mcp.Lists]mcp.Catalog `json:"reading"` // the pages of each list that the client has read so far
	Seen    [mcp.Lists]mcp.Catalog `json:"seen"`    // each list as the client last read it completely; nil: it never did
}

// Listen is one open subscriptions/listen request of a modern client.
type Listen struct {
	ID    []byte // raw
	Line  []byte // the request as it was received
	Acked []byte // raw notifications of the acknowledgement that the client got; nil before it
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
func (s *Session) SetLogLevel(params []byte) { s.LogLevel = bytes.Clone(params) }

// uriOf is the URI that raw params of resources/subscribe name; false: they name none.
func uriOf(params []byte) (string, bool) {
	return jsonrpc.Unquote(jsonrpc.Find(params, "uri").Of(params))
}

// Subscribe stores the params of a resources/subscribe that succeeded.
func (s *Session) Subscribe(params []byte) {
	if _, ok := uriOf(params); ok {
		s.Unsubscribe(params)
		s.Subscriptions = append(s.Subscriptions, bytes.Clone(params))
	}
}

// Unsubscribe removes the subscription named in the params.
func (s *Session) Unsubscribe(params []byte) {
	uri, _ := uriOf(params)
	s.Subscriptions = slices.DeleteFunc(s.Subscriptions, func(other []byte) bool {
		one, _ := uriOf(other)
		return one == uri
	})
}

// Subscribed returns the raw JSON string of each subscribed URI, in order.
func (s *Session) Subscribed() [][]byte {
	out := make([][]byte, len(s.Subscriptions))
	for i, params := range s.Subscriptions {
		uri, _ := uriOf(params)
		out[i] = jsonrpc.AppendQuoted(nil, uri)
	}
	return out
}

// MoveLists transfers what the client has read of lists to another session.
func (s *Session) MoveLists(to *Session) {
	to.Reading, to.Seen = s.Reading, s.Seen
	s.Reading, s.Seen = [mcp.Lists]mcp.Catalog{}, [mcp.Lists]mcp.Catalog{}
}
