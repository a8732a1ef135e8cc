package natsengine

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

const (
	// pingEvery is how often a connection is tried, pingsMissed how many may stay without an answer: NATS' own 2 min and 2 leave a
	// client with a dead connection for minutes.
	pingEvery   = time.Second
	pingsMissed = 2
	// reconnectMin and reconnectMax bound the pause before a connection is tried again: it doubles, and a part of it is chance, so
	// that a hub that has come back is not met by everybody at once.
	reconnectMin = 250 * time.Millisecond
	reconnectMax = 5 * time.Second
	dialLimit    = 5 * time.Second
)

// ErrRefused says that the hub does not let this machine in: its token was revoked, or outlive there is another version.
var ErrRefused = errors.New("the hub refuses the token")

// noCredentials is the ErrRefused of a server that is no hub.
type noCredentials struct{}

func (noCredentials) Error() string        { return "the server refuses the credentials" }
func (noCredentials) Is(target error) bool { return target == ErrRefused }

// ErrStranger says that who answers at the address is not the hub of the token.
var ErrStranger = errors.New("its certificate is not the one that the token names: another machine answers there, the hub was set up anew, or the token was made where no hub runs")

// Options say how a hub is reached.
type Options struct {
	// URL is the address: nats://HOST:PORT, tls://HOST:PORT, or several with commas.
	URL string
	// Host is this machine's name; its answers come to subjects that begin with it.
	Host string
	// Machine tells two machines with the same token apart; sent as the connection's name.
	Machine  string
	Password string // with Host as the user; "": none
	// Pin is the SHA-256 of the hub's certificate; nil: TLS as the URL asks for, checked by the system's certificates.
	Pin   []byte
	Creds string // a file with credentials of NATS, or with the seed of an nkey; "": none
	// Changed is called when the connection is lost, with why, and when it is there again, with HOST:PORT of the hub and nil. It may be nil.
	Changed func(hub string, why error)
	// Refused is called once if the hub does not let us in any more; nothing is tried after that. It may be nil.
	Refused func(error)

	inProcess *server.Server
}

// Engine implements [engine.Engine].
type Engine struct {
	control, call *nats.Conn
	js            jetstream.JetStream
	host          string
	creates       bool // may make buckets
	hub           bool // is the hub's own

	mu      sync.Mutex
	buckets map[string]jetstream.KeyValue
	anew    chan struct{} // closed by the next connection
}

// Connect returns an engine as soon as the hub has answered, or an error that says why it did not: one that wraps [ErrRefused] or
// [ErrStranger], or another one if nobody could be reached. With patient it does not wait, and goes on trying.
func Connect(o Options, patient bool) (*Engine, error) {
	e := &Engine{host: o.Host, buckets: map[string]jetstream.KeyValue{}, anew: make(chan struct{}), creates: o.inProcess != nil || o.Password == "", hub: o.inProcess != nil}
	refused := sync.OnceFunc(func() {
		if o.Refused != nil {
			o.Refused(o.refusal())
		}
	})
	options, err := o.nats(patient, refused)
	if err != nil {
		return nil, err
	}
	if e.control, err = nats.Connect(o.URL, append(options, o.telling(e)...)...); err != nil {
		return nil, o.failure(err)
	}
	if e.call, err = nats.Connect(o.URL, options...); err != nil {
		e.control.Close()
		return nil, o.failure(err)
	}
	if e.js, err = jetstream.New(e.control); err != nil {
		if refusal := e.control.LastError(); e.control.IsClosed() && refusal != nil {
			err = refusal // it was let in for no longer than this took
		}
		e.Close()
		return nil, o.failure(err)
	}
	return e, nil
}

// telling are the options of the connection whose state is told.
func (o Options) telling(e *Engine) []nats.Option {
	changed := o.Changed
	if changed == nil {
		changed = func(string, error) {}
	}
	back := func(c *nats.Conn) {
		changed(connectedTo(c), nil)
		e.connected()
	}
	return []nats.Option{
		nats.DisconnectErrHandler(func(c *nats.Conn, err error) {
			if !c.IsClosed() {
				changed("", o.failure(cmp.Or(err, c.LastError(), errLost)))
			}
		}),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { changed("", o.failure(err)) }),
		nats.ConnectHandler(back), nats.ReconnectHandler(back),
	}
}

// connectedTo is HOST:PORT as it was given.
func connectedTo(c *nats.Conn) string {
	u, err := url.Parse(c.ConnectedUrl())
	if err != nil { // not reached: NATS has parsed it
		return c.ConnectedAddr()
	}
	return u.Host
}

var errLost = errors.New("the connection was lost")

func (o Options) nats(patient bool, refused func()) ([]nats.Option, error) {
	all := []nats.Option{
		nats.Name(o.Machine), nats.Timeout(dialLimit), nats.MaxReconnects(-1), nats.RetryOnFailedConnect(patient), nats.ReconnectBufSize(-1),
		nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(pingsMissed), nats.CustomInboxPrefix(inboxOf(o.Host)),
		nats.CustomReconnectDelay(reconnectAfter), nats.PermissionErrOnSubscribe(true), nats.NoCallbacksAfterClientClose(),
		nats.ClosedHandler(func(c *nats.Conn) {
			if errors.Is(o.failure(c.LastError()), ErrRefused) {
				refused()
			}
		}),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // whoever waits gets its own error
	}
	if o.inProcess != nil {
		all = append(all, nats.InProcessServer(o.inProcess))
	}
	if o.Password != "" {
		all = append(all, nats.UserInfo(o.Host, o.Password))
	}
	if o.Creds != "" {
		credentials, err := credentialsOf(o.Creds)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Creds, err)
		}
		all = append(all, credentials)
	}
	if o.Pin != nil {
		all = append(all, nats.Secure(pinned(o.Pin)), nats.TLSHandshakeFirst(), nats.Token(speaks))
	}
	return all, nil
}

// credentialsOf reads a file with a user's JWT and seed, or with the seed alone.
func credentialsOf(path string) (nats.Option, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(text, []byte("NATS USER JWT")) {
		return nats.UserCredentials(path), nil
	}
	return nats.NkeyOptionFromSeed(path)
}

func reconnectAfter(attempts int) time.Duration {
	pause := min(reconnectMax, reconnectMin<<min(attempts, 10))
	return pause/2 + mathrand.N(pause/2)
}

// pinned is TLS with the one certificate that is meant, whatever name and issuer it has.
func pinned(pin []byte) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the certificate is compared below
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return ErrStranger
			}
			if sum := sha256.Sum256(s.PeerCertificates[0].Raw); subtle.ConstantTimeCompare(sum[:], pin) != 1 {
				return ErrStranger
			}
			return nil
		},
	}
}

func (o Options) refusal() error {
	if o.Password == "" {
		return noCredentials{}
	}
	return ErrRefused
}

// where is the hub, or the servers, as people give them.
func (o Options) where() string {
	if o.Pin == nil {
		return o.URL
	}
	return strings.TrimPrefix(o.URL, "nats://")
}

func (o Options) failure(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrStranger), strings.Contains(err.Error(), ErrStranger.Error()): // crypto/tls and nats.go wrap it as text
		return fmt.Errorf("%s: %w", o.where(), ErrStranger)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return fmt.Errorf("%s: %w", o.where(), o.refusal())
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("%s: nobody answers there, or not with the TLS of a hub", o.where())
	case errors.Is(err, nats.ErrStaleConnection):
		return fmt.Errorf("%s: nothing is heard of it any more", o.where())
	}
	return fmt.Errorf("%s: %w", o.where(), err)
}

// connected has what is watched read again.
func (e *Engine) connected() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.anew)
	e.anew = make(chan struct{})
}

// Connected reports whether the hub can be reached now.
func (e *Engine) Connected() bool { return e.control.IsConnected() && e.call.IsConnected() }

// Close ends the connections.
func (e *Engine) Close() {
	e.control.Close()
	if e.call != nil {
		e.call.Close()
	}
}

// token is what a host is called in subjects and keys.
func token(host string) string { return strings.TrimPrefix(engine.Key("x", host), "x.") }

func inboxOf(host string) string { return inboxes + "." + token(host) }

// late makes an error of NATS one of package engine's: what was not answered may have happened.
func late(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return engine.ErrTooLarge
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", engine.ErrUnknown, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %w", engine.ErrUnknown, err)
}
