package streamhttp

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Options of a Front. The zero value works: no authentication, loopback names only.
type Options struct {
	// Path is where MCP is spoken. "": "/mcp".
	Path string
	// Extra are further handlers by exact path, such as /healthz and /metrics. Host and Origin are checked for them, tokens
	// are not.
	Extra map[string]http.Handler

	// Hosts are names allowed in the Host header beside loopback names and the literal address a connection came in at,
	// without port or with the exact one. "*": any, for use behind a proxy that checks.
	Hosts []string
	// Peer says why the other end of a connection may not come in; nil if it may. It is asked once for each connection, by the
	// goroutine of its first request, before anything is answered, and the error's text is told to whoever is refused (403).
	// nil: every connection may come in.
	Peer func(local, remote net.Addr) error
	// Origins are allowed in the Origin header beside the endpoint's own, as "https://app.example" or with a port.
	// "*": any, for use with tokens.
	Origins []string
	// Bearer are static tokens, any of which lets a client in. None and no OAuth: everybody may come in.
	Bearer []string
	// OAuth makes this a resource server of OAuth 2.1. nil: not.
	OAuth *OAuth
	// TLS is the configuration Serve speaks TLS with; it has the certificate. nil: plain HTTP.
	TLS *tls.Config

	// MaxBody is the largest body of a POST in bytes. 0: 16 MiB.
	MaxBody int64
	// MaxHeader is the largest request header in bytes. 0: 64 KiB.
	MaxHeader int
	// MaxSessions is how many legacy sessions may be open at once; a further initialize is answered 503. 0: 256.
	MaxSessions int
	// MaxConnections is how many connections Serve has open at once. A further one takes the place of one on which nobody has
	// shown a right within a second, from the address that has most of those; without such a one it waits. 0: 1000.
	MaxConnections int
	// SessionIdle is after how long without any HTTP request a legacy session ends. An open stream keeps it, and so does a
	// request that still runs, that for up to eight times as long. 0: 30 min.
	SessionIdle time.Duration
	// SessionRelease is after how long without any HTTP request and stream a legacy session's Hub is told so, which then ends
	// the processes that are kept for it. 0: 2 min, after which an unused connection is closed, too.
	SessionRelease time.Duration
	// QueueBytes is how much may wait for a client that does not read; a message that comes on top of more cuts its stream.
	// 0: 16 MiB.
	QueueBytes int
	// StoreBytes is how much of the event streams is kept for each legacy session, for Last-Event-ID. 0: 4 MiB.
	StoreBytes int
	// StreamAfter is when a legacy request that has brought nothing yet gets its event stream, so that there is an event id
	// to resume from. 0: 1 s. In the modern era it is KeepAlive.
	StreamAfter time.Duration
	// KeepAlive is how often a comment is sent on a silent event stream. 0: 15 s; proxies commonly cut after 60.
	KeepAlive time.Duration
	// ReadTimeout is how long a request's header may take, and then again its body. 0: 30 s.
	ReadTimeout time.Duration
	// WriteTimeout is how long one write to a client may take until its connection is given up. 0: 30 s.
	WriteTimeout time.Duration
	// Grace is how long running requests may go on once Serve's context is done. 0: 5 s.
	Grace time.Duration

	// Log hears of refused clients (at debug) and of what net/http has to say (at warn). nil: nobody.
	Log *slog.Logger
}

// OAuth describes this resource server (RFC 9728) and who is let in by its access tokens.
type OAuth struct {
	// Issuer is the authorization server's issuer identifier, an https URL.
	Issuer string
	// Resource is the URL clients reach this endpoint at; tokens must have it as audience.
	Resource string
	// Scopes a token must have, all of them. They are told to clients in challenges and in the metadata.
	Scopes []string
	// Verifier checks tokens. nil: JWTs signed by the issuer's keys, see NewJWTVerifier.
	Verifier TokenVerifier
}

// TokenVerifier checks access tokens. It is called from any goroutine.
type TokenVerifier interface {
	// VerifyToken returns what a token says. An error that wraps ErrTokenInvalid refuses the token (401); any other says
	// that it cannot be checked now (503).
	VerifyToken(ctx context.Context, token string) (Claims, error)
}

// Claims are what is taken from an access token.
type Claims struct {
	Subject string // never "" of a token that was accepted
	Scopes  []string
	// Expires is when the token ends; streams that have no end of their own end with it. Zero: never.
	Expires time.Time
}

func orDefault[T int | int64 | time.Duration](value, fallback T) T {
	if value == 0 {
		return fallback
	}
	return value
}

// withDefaults returns the options with a value in every field that has a default.
func (o Options) withDefaults() Options {
	if o.Path == "" {
		o.Path = "/mcp"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.MaxBody = orDefault(o.MaxBody, 16<<20)
	o.MaxHeader = orDefault(o.MaxHeader, 64<<10)
	o.MaxSessions = orDefault(o.MaxSessions, 256)
	o.MaxConnections = orDefault(o.MaxConnections, 1000)
	o.SessionIdle = orDefault(o.SessionIdle, 30*time.Minute)
	o.SessionRelease = orDefault(o.SessionRelease, idleConnection)
	o.QueueBytes = orDefault(o.QueueBytes, 16<<20)
	o.StoreBytes = orDefault(o.StoreBytes, 4<<20)
	o.StreamAfter = orDefault(o.StreamAfter, time.Second)
	o.KeepAlive = orDefault(o.KeepAlive, 15*time.Second)
	o.ReadTimeout = orDefault(o.ReadTimeout, 30*time.Second)
	o.WriteTimeout = orDefault(o.WriteTimeout, 30*time.Second)
	o.Grace = orDefault(o.Grace, 5*time.Second)
	return o
}
