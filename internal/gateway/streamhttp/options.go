package streamhttp

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Path is where MCP is spoken.
const Path = "/mcp"

// Options of a Front. The zero value works: no authentication, loopback names only.
type Options struct {
	// Extra are further handlers by exact path, such as /healthz and /metrics. Host and Origin are checked for them,
	// tokens are not.
	Extra map[string]http.Handler

	// Hosts are names allowed in the Host header besides loopback names and the literal address of the connection,
	// without port or with the exact one. They are in lower case.
	Hosts []string
	// Peer returns why the other end of a connection is refused; nil if it is accepted. It is called once for each
	// connection, by the goroutine of its first request, before any answer, and the error's text is sent to the client
	// (403). nil: all are accepted.
	Peer func(local, remote net.Addr) error
	// Origins are allowed in the Origin header besides the endpoint's own, as "https://app.example" or with a port, in lower case.
	Origins []string
	// Bearer are static tokens, each of which grants access. None and no OAuth: everybody has access.
	Bearer []string
	// Views are parts of what there is, with paths below [Path]. Tokens of a view grant access, too, and so make a token
	// necessary. SetViews changes them.
	Views []View
	// OAuth makes this a resource server of OAuth 2.1. nil: not.
	OAuth *OAuth
	// TLS is the configuration Serve speaks TLS with; it has the certificate. nil: plain HTTP.
	TLS *tls.Config

	// MaxBody is the largest body of a POST in bytes. 0: 16 MiB.
	MaxBody int64
	// MaxUnderWay is how many bytes of requests may be read or unanswered at once, all clients together; a further one is
	// answered 503. One token may have half of what the others leave, if there can be others. 0: 128 MiB, or 8
	// times MaxBody if that is more.
	MaxUnderWay int64
	// MaxSessions is how many legacy sessions may be open at once; a further initialize is answered 503. One token may have
	// half of those that the others leave, if there can be others. 0: 256.
	MaxSessions int
	// MaxConnections is how many connections Serve has open at once. A further one replaces one without an authorized
	// request within a second, from the address that has most of those; otherwise it waits. 0: 1000.
	MaxConnections int
	// SessionIdle is after how long without any HTTP request a legacy session ends. An open stream keeps it, and so does a
	// request that still runs, that for up to eight times as long. 0: 30 min.
	SessionIdle time.Duration
	// SessionRelease is how long a legacy session may be without any HTTP request and stream until its Hub is told,
	// which then ends the session's processes. 0: 2 min, after which an unused connection is closed, too.
	SessionRelease time.Duration
	// QueueBytes is how much may wait for a client that does not read; a message on top of more ends its stream. 0: 16
	// MiB.
	QueueBytes int
	// StoreBytes is how much of the event streams is kept for each legacy session, for Last-Event-ID. 0: 4 MiB.
	StoreBytes int
	// StreamAfter is when a pending legacy request gets its event stream, so that it has an event id to resume from. 0:
	// 1 s. In the modern era it is KeepAlive.
	StreamAfter time.Duration
	// KeepAlive is how often a comment is sent on a silent event stream. 0: 15 s; proxies commonly cut after 60.
	KeepAlive time.Duration
	// ReadTimeout is how long a request's header may take, and then again its body. 0: 30 s.
	ReadTimeout time.Duration
	// WriteTimeout is how long one write to a client may take until its connection is given up. 0: 30 s.
	WriteTimeout time.Duration
	// Grace is how long running requests may go on once Serve's context is done. 0: 5 s.
	Grace time.Duration

	// Store keeps the legacy sessions beyond the Front's life: until they end, or have been unused for SessionIdle. nil:
	// they end with it.
	Store Store

	// Peers are the other gateways of the same configuration. nil: there are none.
	Peers *Peers

	// Log gets refused clients (at debug) and errors of net/http (at warn). nil: none.
	Log *slog.Logger
}

// OAuth describes this resource server (RFC 9728) and which access tokens it accepts: JWTs signed by the issuer's keys.
type OAuth struct {
	// Issuer is the authorization server's issuer identifier, an https URL.
	Issuer string
	// Resource is the URL clients reach this endpoint at; tokens must have it as audience. Tokens for Resource/NAME count
	// at the path of the view NAME.
	Resource string
	// Scopes that a token must have, all of them. They are in challenges and in the metadata.
	Scopes []string
}

// Claims are what is taken from an access token.
type Claims struct {
	Subject string   `json:"subject,omitempty"` // never "" in an accepted token
	Scopes  []string `json:"scopes,omitempty"`
	// Audience are the resources that the token is for, if it is for a view's only; nil: it is for OAuth.Resource.
	Audience []string `json:"audience,omitempty"`
	// Expires is when the token ends; endless streams end with it. Zero: never.
	Expires time.Time `json:"expires,omitzero"`
}

// withDefaults fills in the defaults.
func (o Options) withDefaults() Options {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.MaxBody = cmp.Or(o.MaxBody, 16<<20)
	o.MaxUnderWay = cmp.Or(o.MaxUnderWay, max(128<<20, 8*o.MaxBody))
	o.MaxSessions = cmp.Or(o.MaxSessions, 256)
	o.MaxConnections = cmp.Or(o.MaxConnections, 1000)
	o.SessionIdle = cmp.Or(o.SessionIdle, 30*time.Minute)
	o.SessionRelease = cmp.Or(o.SessionRelease, idleConnection)
	o.QueueBytes = cmp.Or(o.QueueBytes, 16<<20)
	o.StoreBytes = cmp.Or(o.StoreBytes, 4<<20)
	o.StreamAfter = cmp.Or(o.StreamAfter, time.Second)
	o.KeepAlive = cmp.Or(o.KeepAlive, 15*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 30*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.Grace = cmp.Or(o.Grace, 5*time.Second)
	return o
}
