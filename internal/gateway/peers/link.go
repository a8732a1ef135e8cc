package peers

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/peer"
)

// ShortestSecret is how many characters a secret has at least. Whoever can connect to a gateway sees the key that is made of it, and can
// try secrets against that without asking anybody: it has to be random, such as that of openssl rand -hex 32.
const ShortestSecret = 32

// ErrSecret is wrapped by errors about the other end of a connection that does not have our secret.
var ErrSecret = errors.New("it has another secret")

// errNoLink is wrapped by errors about what speaks something else.
var errNoLink = errors.New("it does not speak as one of several gateways does")

// handshakeTime is how long both ends may take to show each other that they have the secret.
const handshakeTime = 5 * time.Second

// connectTime is how long a connection to another gateway may take to be made, without the handshake.
const connectTime = 5 * time.Second

// idleConnection is how long an unused connection to another gateway is kept; that keeps them longer.
const idleConnection = 90 * time.Second

// Roles of the ends of a connection. Each has a key of its own, so that what one end has signed is of no use at the other.
const roleAsks, roleAsked = "gateway that asks", "gateway that is asked"

// Link is the secret that equal gateways share, as TLS 1.3 with keys that are made of it: no certificate has to be issued, and each end
// accepts the key of the other and no other one. It may be used from any goroutine.
type Link struct {
	// Name tells the gateways of this secret from others, and says nothing of the secret: 16 letters and digits.
	Name string
	// SessionKey encrypts records of sessions where others can read them: 32 bytes.
	SessionKey []byte
	// StateKey seals what a client is given to carry: 32 bytes.
	StateKey []byte

	certs map[string]tls.Certificate // by role, with their keys
}

// NewLink returns the link of a secret, which has at least [ShortestSecret] characters.
func NewLink(secret string) (*Link, error) {
	if len(secret) < ShortestSecret {
		return nil, fmt.Errorf("the secret has %d characters, and needs %d", len(secret), ShortestSecret)
	}
	derive := func(what string, size int) []byte {
		key, _ := hkdf.Key(sha256.New, []byte(secret), nil, "outlive gateway 1 "+what, size) // it fails only for keys of 8 KiB and more
		return key
	}
	l := &Link{
		Name:       hex.EncodeToString(derive("name", 8)),
		SessionKey: derive("sessions", 32),
		StateKey:   derive("states", 32),
		certs:      map[string]tls.Certificate{},
	}
	for _, role := range []string{roleAsks, roleAsked} {
		key := ed25519.NewKeyFromSeed(derive(role, ed25519.SeedSize))
		// Nobody reads it: it is there because TLS has keys in certificates.
		model := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Unix(1<<33, 0)}
		cert, err := x509.CreateCertificate(nil, model, model, key.Public(), key)
		if err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
		l.certs[role] = tls.Certificate{Certificate: [][]byte{cert}, PrivateKey: key}
	}
	return l, nil
}

// config is that of one role, which accepts the other role's key alone.
func (l *Link) config(own, other string) *tls.Config {
	wanted := l.certs[other].PrivateKey.(ed25519.PrivateKey).Public().(ed25519.PublicKey)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{l.certs[own]},
		InsecureSkipVerify: true, ClientAuth: tls.RequireAnyClientCert, SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				if key, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey); ok && bytes.Equal(key, wanted) {
					return nil // TLS has seen that it has the private key
				}
			}
			return ErrSecret
		},
	}
}

// Transport carries requests to other gateways: the host of a request's URL is the address of one.
func (l *Link) Transport() *http.Transport {
	return &http.Transport{
		DialContext:         func(ctx context.Context, _, address string) (net.Conn, error) { return l.Dial(ctx, address) },
		MaxIdleConnsPerHost: 1 << 10, IdleConnTimeout: idleConnection, DisableCompression: true,
		ExpectContinueTimeout: time.Hour, // for as long as it is waited for; without one a body is sent at once
	}
}

// Dial connects to the gateway at an address. An error that wraps [ErrSecret] says that its secret is another one.
func (l *Link) Dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := peer.Dialer(connectTime).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	out := tls.Client(conn, l.config(roleAsks, roleAsked))
	if err := shake(ctx, out); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("the gateway at %s: %w", address, err)
	}
	return out, nil
}

// shake does the handshake, and says what is wrong if it fails.
func shake(ctx context.Context, conn *tls.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeTime)
	defer cancel()
	err := conn.HandshakeContext(ctx)
	var alert *net.OpError
	switch {
	case err == nil, errors.Is(err, ErrSecret), silent(err):
		return err
	case errors.As(err, &alert) && alert.Op == "remote error" && alert.Err.Error() == badCertificate:
		return ErrSecret
	}
	return fmt.Errorf("%w: %w", errNoLink, err)
}

// badCertificate is what the end is told by crypto/tls whose key VerifyConnection did not accept at the other one.
const badCertificate = "tls: bad certificate"

// silent reports that the other end has left, or has said nothing, as one does that looks whether somebody listens.
func silent(err error) bool {
	var broken *net.OpError
	return errors.Is(err, io.EOF) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, net.ErrClosed) || errors.As(err, &broken) && broken.Op == "read"
}

// mostRefused is how many addresses a listener remembers as told of.
const mostRefused = 100

// Listener accepts connections of other gateways. The handshake is part of a connection's first Read, which ends with io.EOF if the other
// end does not have the secret: nothing of it is read, and nothing is written to it.
type Listener struct {
	*net.TCPListener
	refused func(from netip.Addr, why error)
	config  *tls.Config

	mu   sync.Mutex
	told map[netip.Addr]bool
}

// Listen listens at an address. refused is called when somebody did not have the secret, once for each of their addresses until it has
// shown it.
func (l *Link) Listen(address string, refused func(from netip.Addr, why error)) (*Listener, error) {
	from, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return &Listener{TCPListener: from.(*net.TCPListener), refused: refused, config: l.config(roleAsked, roleAsks), told: map[netip.Addr]bool{}}, nil
}

// Accept implements net.Listener. Nothing is known of the connection yet.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	peer.Watch(conn)
	return &linked{Conn: tls.Server(conn, l.config), of: l}, nil
}

// linked is a connection at the side that is asked.
type linked struct {
	*tls.Conn
	of    *Listener
	first sync.Once
	known bool // by the goroutine that reads: it has the secret
}

// Read implements net.Conn. One goroutine reads at a time.
func (c *linked) Read(p []byte) (int, error) {
	c.first.Do(func() {
		err := shake(context.Background(), c.Conn)
		c.known = err == nil
		c.of.note(c.RemoteAddr(), err)
	})
	if !c.known {
		return 0, io.EOF
	}
	return c.Conn.Read(p)
}

// note tells of those without the secret.
func (l *Listener) note(from net.Addr, err error) {
	at, _ := netip.ParseAddrPort(from.String()) // the zero value stands for what is no address
	one := at.Addr().Unmap()
	l.mu.Lock()
	tell := err != nil && !silent(err) && !l.told[one] && len(l.told) < mostRefused
	switch {
	case err == nil:
		delete(l.told, one)
	case tell:
		l.told[one] = true
	}
	l.mu.Unlock()
	if tell {
		l.refused(one, err)
	}
}
