package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/replica"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// coreIdle is how long the core that replicas have started goes on without them.
const coreIdle = time.Minute

// coreConnections is how many connections of replicas a core has at once. Each replica has a limit of its own.
const coreConnections = 1 << 20

// coreKey tells the cores of one user apart: by what would be configured otherwise.
func coreKey(f gatewayFlags, path string) (string, error) {
	what := []string{f.name}
	if path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		what = append(what, abs)
	} else {
		wd, err := os.Getwd()
		if err != nil {
			return "", err
		}
		what = append(append(what, "", wd), f.one...)
	}
	sum := sha256.Sum256([]byte(strings.Join(what, "\x00")))
	return hex.EncodeToString(sum[:8]), nil
}

// coreSocket is where the core with this key listens.
func coreSocket(key string) string {
	return control.PathIn(filepath.Join(stateDir(), "gateway", "core"), key)
}

// coreOf is what a gateway has that is the core of replicas.
type coreOf struct {
	*replica.Core
	sinks  *sinks
	at     string // address for replicas of other machines; "": it is for those of this machine
	socket string
	idle   time.Duration
	// sessions is where they are, for people; "": in the state directory.
	sessions string
	lock     *flock.Flock // held for as long as it has the sessions
	ready    *os.File     // gets readyWord, and is closed; nil: nobody waits for that
}

// coreStrangers is how many connections a core has at once that have not shown the secret.
const coreStrangers = 1024

// yieldPath is where a core is asked to end for another one.
const yieldPath = "/yield"

// errCoreRuns is the error for a second core.
var errCoreRuns = errors.New("a core with this configuration runs already: end it first; outlive status shows its PID")

// listenAsCore opens the socket for replicas.
func (g *endpoint) listenAsCore(ctx context.Context, io streams, file *config.File) error {
	key, err := coreKey(g.flags, g.path)
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	if err := g.setCoreFront(file); err != nil {
		return err
	}
	c := &coreOf{sinks: g.sinks, socket: coreSocket(key), idle: g.flags.coreIdle, at: g.flags.link.listen}
	var link *replica.Link
	address := "core " + c.socket
	if c.at != "" {
		if link, err = g.flags.link.open(); err != nil {
			return err
		}
		address = "core at " + c.at
	}
	left, err := g.beginCore(ctx, c, link, address)
	if err != nil {
		c.close()
		if coded := (*exitError)(nil); errors.As(err, &coded) {
			return err
		}
		return fail(exitFailure, "%w", err)
	}
	if g.begun != file { // it was read again when this core's turn came
		if err := g.setCoreFront(g.begun); err != nil {
			return err
		}
	}
	g.front.MaxConnections = coreConnections
	g.listener = ownUserListener{left}
	if link != nil {
		c.at = left.Addr().String()
		g.front.MaxAnonymous = coreStrangers
		listener := link.Listener(c.tellRefused)
		listener.Serves = g.turn.serves
		g.listener = linkListener{left, listener}
	}
	if c.idle > 0 && g.from == nil {
		c.ready = io.out
	}
	g.core, g.replace.address = c, address
	if g.turn != nil {
		c.sessions = "this core has the gateway's sessions, which are in the fleet"
		g.sessions.warn, g.sessions.Store = g.warn, g.turn.store
		g.front.Store = &g.sessions
	} else {
		g.keepSessionsAs(g.begun, "core-"+key)
	}
	c.Core = replica.NewCore(replica.CoreOptions{Idle: c.idle, Unused: func() { g.Interrupt() }, Came: c.tellCame, Left: c.tellLeft})
	g.front.Admitted = true
	g.front.Endless = map[string]func(http.ResponseWriter, *http.Request, <-chan struct{}){replica.Path: c.Take}
	return nil
}

// setCoreFront sets the options of the front by a configuration.
func (g *endpoint) setCoreFront(file *config.File) (err error) {
	if g.front, err = frontOptions(file); err == nil && file.Auth == nil {
		_, err = admitLocal(&g.front, file, g.flags.name) // the replicas' tokens count here, too
	}
	return err
}

// beginCore returns the listener of a core once it has the sessions, and no other one does.
func (g *endpoint) beginCore(ctx context.Context, c *coreOf, link *replica.Link, address string) (socketListener, error) {
	left, err := g.inherit(address)
	if err != nil {
		return nil, err
	}
	if c.idle == 0 && g.from == nil {
		unlock, err := c.takeOver()
		defer unlock()
		if err != nil {
			return nil, err
		}
	}
	if err := c.take(); err != nil {
		return nil, err
	}
	if g.begun.Sessions == config.SessionsInFleet {
		if left == nil && c.at != "" { // an address that cannot be had is told now, and not in the moment when this core is needed
			try, err := c.listen()
			if err != nil {
				return nil, err
			}
			_ = try.Close()
		}
		if err := g.standBy(ctx, link, c.socket+".lease"); err != nil {
			return nil, err
		}
	}
	if left != nil {
		return left, nil
	}
	return c.listen()
}

// takeOver has a core that replicas have started end, if there is one: from now on there is one that does not depend on them. Until
// unlock they start no other.
func (c *coreOf) takeOver() (unlock func(), err error) {
	if err := control.MakeDir(filepath.Dir(c.socket)); err != nil {
		return func() {}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), daemonPatience)
	defer cancel()
	if unlock, err = lockStart(ctx, c.socket); err != nil {
		return func() {}, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return control.Dial(ctx, c.socket)
	}}}
	ask, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://core"+yieldPath, nil)
	if err != nil { // not reached
		return unlock, err
	}
	resp, err := client.Do(ask)
	if err != nil { // nobody listens
		return unlock, nil
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return unlock, errCoreRuns
	}
	return unlock, nil
}

// yield ends a core that replicas have started, for one that was started by itself.
func (g *endpoint) yield(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || g.core.idle == 0 {
		http.Error(w, errCoreRuns.Error(), http.StatusConflict)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	g.Interrupt()
}

// take waits for the end of a former core: two would write the same records.
func (c *coreOf) take() error {
	if err := control.MakeDir(filepath.Dir(c.socket)); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), daemonPatience)
	defer cancel()
	lock := flock.New(c.socket+".core", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, daemonLook); err != nil {
		return errCoreRuns
	}
	c.lock = lock
	return nil
}

func (c *coreOf) listen() (socketListener, error) {
	if c.at != "" {
		l, err := net.Listen("tcp", c.at)
		if err != nil {
			return nil, fmt.Errorf("%w: choose another address with --core-listen", err)
		}
		return l.(*net.TCPListener), nil
	}
	l, err := control.ListenAt(c.socket)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // by then it may belong to the next core
	return l, nil
}

// close lets the next core begin.
func (c *coreOf) close() {
	if c != nil && c.lock != nil {
		_ = c.lock.Close() // the system releases it in any case
	}
}

// tellListening says that replicas can come.
func (c *coreOf) tellListening() {
	say := "Waiting for replicas: outlive gateway --replica --listen ADDRESS, with the same configuration"
	if c.at != "" {
		say = "Waiting for replicas at " + c.at + ": outlive gateway --replica --core-at HOST:PORT --core-secret-file FILE --listen ADDRESS, with the same configuration"
	}
	if c.sessions != "" {
		say += "; " + c.sessions
	}
	c.sinks.say(event.GatewayListening, say)
	if c.ready != nil {
		_, _ = c.ready.WriteString(readyWord) // the replica that has started it may have ended
		_ = c.ready.Close()
	}
}

func (c *coreOf) tellCame(who replica.Attendant) {
	c.sinks.say(event.ReplicaJoined, fmt.Sprintf("Replica at %s joined (PID=%d)", who.URL, who.PID), slog.String(event.KeyURL, who.URL))
}

func (c *coreOf) tellLeft(who replica.Attendant) {
	c.sinks.say(event.ReplicaLeft, fmt.Sprintf("Replica at %s left (PID=%d)", who.URL, who.PID), slog.String(event.KeyURL, who.URL))
}

// tellRefused reports somebody without the secret.
func (c *coreOf) tellRefused(from netip.Addr, why error) {
	c.sinks.Emit(event.Event{Type: event.ReplicaRefused, Time: time.Now(), Level: slog.LevelWarn, Message: fmt.Sprintf("A connection from %s is refused: %v%s", from, why, secretHint(why)),
		Attrs: []slog.Attr{slog.String(event.KeyError, why.Error())}})
}

// url is where clients come, "" if there are no replicas.
func (c *coreOf) url() string {
	if all := c.Replicas(); len(all) > 0 {
		return all[0].URL
	}
	return ""
}
