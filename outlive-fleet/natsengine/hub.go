package natsengine

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
)

const (
	maxPayload    = 1<<20 + 64<<10 // engine.MaxMessage, and room for headers
	maxStore      = 4 << 30
	writeDeadline = 2 * time.Second
	startLimit    = 10 * time.Second
	ownUser       = ""          // no machine is called so
	ownName       = "(the hub)" // nor so: what the server calls our own connections, see [Hub.howEnded]
	// authLimit is how long letting a machine in may take: first uses of tokens are written down.
	authLimit = 2 * dialLimit
)

// HubOptions are a hub's settings.
type HubOptions struct {
	// Dir is where JetStream keeps its files.
	Dir string
	// Listen is HOST:PORT, where other machines connect; "": the hub is for this process alone. Port 0 is any free one.
	Listen string
	// Certificate is what the hub shows to them.
	Certificate tls.Certificate
	// Admit reports whether a machine that calls itself host may come in with that password, and why not. It is called with every
	// connection, from any goroutine. An error that wraps [ErrLater] sends the machine away, and does not refuse its token.
	Admit func(host, machine, password, from string) error
	// Refused is told of each machine that does not come in. It may be nil.
	Refused func(host, from string, why error)
}

// ErrLater says that it is not known yet whether a machine may come in.
var ErrLater = errors.New("whether it may come in cannot be known just now")

// speaks is what a member says with its password: which rights it needs ([Rights]), and what it is asked at.
const speaks = "2"

var errVersion = errors.New("outlive there is another version, which this hub does not understand: upgrade the older of the two")

// The longest names, in bytes, of which a token is looked up: whoever says more has none.
const (
	hostMost    = 64
	machineMost = 128
)

// Hub is an embedded NATS server with JetStream.
type Hub struct {
	server *server.Server
	opts   HubOptions
	own    string // our own password

	mu    sync.Mutex
	conns map[uint64]conn // by the server's number
}

// conn is a machine's connection: who that is, and the SHA-256 of its password as hex.
type conn struct{ host, hash string }

// StartHub starts a hub, and returns when it can be reached.
func StartHub(o HubOptions) (*Hub, *Engine, error) {
	h := &Hub{opts: o, own: rand.Text(), conns: map[uint64]conn{}}
	so := &server.Options{
		ServerName: "outlive", DontListen: o.Listen == "", NoSigs: true, NoLog: true,
		JetStream: true, StoreDir: o.Dir, SyncAlways: true, JetStreamMaxMemory: 64 << 20, JetStreamMaxStore: maxStore, JetStreamDomain: "hub",
		MaxPayload: maxPayload, PingInterval: pingEvery, MaxPingsOut: pingsMissed, WriteDeadline: writeDeadline,
		CustomClientAuthentication: h, AuthTimeout: authLimit.Seconds(),
	}
	if o.Listen != "" {
		host, port, err := splitAddress(o.Listen)
		if err != nil {
			return nil, nil, err
		}
		so.Host, so.Port = host, port
		so.TLSConfig = &tls.Config{Certificates: []tls.Certificate{o.Certificate}, MinVersion: tls.VersionTLS13}
		so.TLS, so.TLSHandshakeFirst, so.TLSTimeout = true, true, dialLimit.Seconds()
	}
	s, err := server.NewServer(so)
	if err != nil {
		return nil, nil, fmt.Errorf("start the hub: %w", err)
	}
	h.server = s
	problems := &problems{}
	s.SetLogger(problems, false, false)
	go s.Start()
	if !s.ReadyForConnections(startLimit) {
		s.Shutdown()
		return nil, nil, fmt.Errorf("start the hub: %w", problems.error())
	}
	e, err := Connect(Options{Host: ownUser, Password: h.own, Machine: "hub", inProcess: s}, false)
	if err != nil {
		s.Shutdown()
		return nil, nil, err
	}
	return h, e, nil
}

func splitAddress(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("%q: want ADDRESS:PORT, such as 0.0.0.0:4242", address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	if host == "" {
		host = "0.0.0.0"
	}
	return host, port, nil
}

// Address is where it listens.
func (h *Hub) Address() string {
	if a := h.server.Addr(); a != nil {
		return a.String()
	}
	return ""
}

// Close ends the hub; everything is on disk then.
func (h *Hub) Close() {
	h.server.Shutdown()
	h.server.WaitForShutdown()
}

// Check implements server.Authentication.
func (h *Hub) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	sum := sha256.Sum256([]byte(o.Password))
	own := subtle.ConstantTimeCompare([]byte(o.Password), []byte(h.own)) == 1
	from := ""
	if a := c.RemoteAddress(); a != nil {
		from = a.String()
	}
	var err error
	switch {
	case own && o.Username == ownUser:
		c.RegisterUser(&server.User{Username: ownName})
		return true
	case c.Kind() != server.CLIENT || h.opts.Admit == nil:
		return false
	case len(o.Username) > hostMost || len(o.Name) > machineMost:
		return false
	case o.Token != speaks:
		err = errVersion
	default:
		h.note(c.GetID(), conn{o.Username, hex.EncodeToString(sum[:])}) // before it is looked whether the token is good: it may be revoked meanwhile
		err = h.opts.Admit(o.Username, o.Name, o.Password, from)
	}
	if errors.Is(err, ErrLater) {
		_ = h.server.DisconnectClientByID(c.GetID()) // it comes again; whoever is refused never does
	}
	if err != nil {
		h.forget(c.GetID())
		if h.opts.Refused != nil {
			h.opts.Refused(o.Username, from, err)
		}
		return false
	}
	publish, subscribe := Rights(o.Username)
	c.RegisterUser(&server.User{Username: o.Username, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: publish},
		Subscribe: &server.SubjectPermission{Allow: subscribe},
	}})
	return true
}

func (h *Hub) note(id uint64, c conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conns[id] = c
}

func (h *Hub) forget(id uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, id)
}

// Drop ends the connections that are not to stay, by host and the SHA-256 of their password as hex: whoever comes again is asked anew. It
// reports whether there was one. It is to be called now and then, since it forgets those that have gone.
func (h *Hub) Drop(stays func(host, hash string) bool) bool {
	var ids []uint64
	h.mu.Lock()
	for id, c := range h.conns {
		switch {
		case !stays(c.host, c.hash):
			ids = append(ids, id)
			delete(h.conns, id)
		case h.server.GetClient(id) == nil: // it has gone, which nobody says
			delete(h.conns, id)
		}
	}
	h.mu.Unlock()
	for _, id := range ids {
		_ = h.server.DisconnectClientByID(id) // it may have gone
	}
	return len(ids) > 0
}

// OwnTables are those that a machine of the fleet writes its own key of: all that it writes of itself.
var OwnTables = []string{"digest", "state", "news"}

// inboxes is how the subjects begin at which machines get answers, each below its own name.
const inboxes = "_INBOX"

// Rights are the subjects that a machine may publish and subscribe to. It may write what it says of itself, read everything, ask everybody under its
// own name, be asked as itself, answer, be the judge, and have the sessions of a gateway. It has no right to answer wherever a message wants its answer
// (NATS' allow_responses): that is a right to publish anywhere, since it may send itself messages.
//
// NATS has no permission for where a server answers, or delivers what a consumer reads: that goes to any subject but JetStream's own. So a machine may
// ask nothing whose answer is what another request has written, word for word (DIRECT.GET, CONSUMER.MSG.NEXT), and may make consumers only of the
// bucket of all that is watched: a server refuses one that delivers into its own bucket. What is left are a server's own words, see [ofMachine].
func Rights(host string) (publish, subscribe []string) {
	self := token(host)
	publish = []string{
		"run.*." + self, EndedAddress + "." + self, inboxes + ".*.>", "$JS.API.INFO", "$JS.FC.>",
		"$KV." + bucketPrefix + leaseBucket + ".lease.judge", said + "esc.>", // of whichever machine is the judge
		"$KV." + bucketPrefix + leaseBucket + "." + sessions.Leases() + ".*", "$KV." + bucketPrefix + sessions.Table + "." + sessions.Table + ".>", // has a gateway's sessions
	}
	for _, table := range OwnTables {
		publish = append(publish, said+table+"."+self)
	}
	for _, bucket := range []string{saidBucket, leaseBucket, sessions.Table} {
		stream := "KV_" + bucketPrefix + bucket
		publish = append(publish, "$JS.API.STREAM.INFO."+stream, "$JS.API.STREAM.MSG.GET."+stream)
	}
	for _, verb := range []string{"CREATE", "INFO", "DELETE"} {
		stream := "KV_" + bucketPrefix + saidBucket
		publish = append(publish, "$JS.API.CONSUMER."+verb+"."+stream, "$JS.API.CONSUMER."+verb+"."+stream+".>")
	}
	return publish, []string{inboxOf(host) + ".>", "run." + self + ".*"}
}

// problems keeps what the server says before it ends by itself.
type problems struct {
	mu   sync.Mutex
	last []string
}

func (p *problems) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = append(p.last, fmt.Sprintf(format, args...))
	p.last = p.last[max(0, len(p.last)-3):]
}

func (p *problems) error() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.last) == 0 {
		return errors.New("it is not ready after 10 s")
	}
	return errors.New(strings.Join(p.last, "; "))
}

// Noticef implements server.Logger.
func (p *problems) Noticef(string, ...any) {}

// Warnf implements server.Logger.
func (p *problems) Warnf(string, ...any) {}

// Fatalf implements server.Logger.
func (p *problems) Fatalf(format string, args ...any) { p.note(format, args...) }

// Errorf implements server.Logger.
func (p *problems) Errorf(format string, args ...any) { p.note(format, args...) }

// Debugf implements server.Logger.
func (p *problems) Debugf(string, ...any) {}

// Tracef implements server.Logger.
func (p *problems) Tracef(string, ...any) {}
