package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// membership is how this machine belongs to a fleet.
type membership struct {
	Version int    `json:"version"`
	Host    string `json:"host"`    // what it is called there
	Machine string `json:"machine"` // made by chance once, see [settings.machine]
	Address string `json:"address,omitempty"`
	Token   string `json:"token,omitempty"`
	NATS    string `json:"nats,omitempty"` // a server of the user's own, in place of Address and Token
	Creds   string `json:"creds,omitempty"`
	// Permissions says that other machines may press Allow, Deny and Stop here.
	Permissions bool `json:"permissions,omitempty"`
}

// where is the hub, as people are told.
func (m membership) where() string {
	if m.NATS != "" {
		return m.NATS
	}
	return m.Address
}

// revoking is how this machine is let in no more.
func (m membership) revoking() string {
	if m.NATS != "" {
		return "delete its line on the servers, and have them reload"
	}
	return "on the hub, outlive fleet token revoke " + m.Host
}

func (m membership) options() (natsengine.Options, error) {
	o := natsengine.Options{Host: m.Host, Machine: m.Machine}
	if m.NATS != "" {
		o.URL, o.Creds = m.NATS, m.Creds
		return o, nil
	}
	t, err := parseToken(m.Token)
	if err != nil {
		return o, err
	}
	o.URL, o.Password, o.Pin = "nats://"+m.Address, t.Secret, t.Pin
	return o, nil
}

// joining are the flags of the verb.
type joining struct {
	token, nats, creds, name string
	permissions              bool
}

func newJoin(s *settings) *cobra.Command {
	var f joining
	cmd := &cobra.Command{
		Use:   "join [ADDRESS --token TOKEN]",
		Short: "Join this machine to a fleet, and stay as long as this runs",
		Long: `Join this machine to a fleet, and stay as long as this runs. ADDRESS is HOST or HOST:PORT of the hub.
TOKEN was made there, for this machine, with "outlive fleet token make NAME", and "-" reads it from stdin, where no other user sees it.
Both are kept: from then on "outlive fleet join" alone goes on. Only connections outwards are made. While the hub cannot be reached, everything here goes on, and
the hub is told afterwards.

Others of the fleet see servers, agents and incidents of this machine, and may restart servers and agents, read servers' logs, and
acknowledge incidents here. They can have nothing else done. With --permissions they may also press Allow, Deny and Stop: who can write on one
machine of the fleet then decides what agents here may do.

In place of a hub --nats is a NATS server of your own, with JetStream, or several of a cluster, with commas; --creds is the file with
credentials for it. A fleet on a cluster of three survives the loss of one of them.

EXIT STATUS
  0  interrupted, or the machine has left the fleet
  1  the hub cannot be reached at the first time, or refuses the token
  2  a mistake in the command line`,
		Example: "  outlive fleet join hub.example:4242 --token outlive1.…\n  outlive fleet join --nats tls://nats1.example,tls://nats2.example,tls://nats3.example --creds fleet.creds\n  outlive fleet join",
		Args:    cobra.MaximumNArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.join(cmd.Context(), f, strings.Join(args, "")) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.token, "token", "", "the token of this machine; -: from stdin")
	fl.StringVar(&f.nats, "nats", "", "a NATS server of your own in place of a hub: `URL`, or several with commas")
	fl.StringVar(&f.creds, "creds", "", "with --nats: `FILE` with credentials")
	fl.StringVar(&f.name, "name", "", "with --nats: what this machine is called; default: its host name")
	fl.BoolVar(&f.permissions, "permissions", false, "let other machines of the fleet press Allow, Deny and Stop here")
	return cmd
}

// membership is what the flags say, or what was kept; fresh says that nothing of it was tried yet.
func (f joining) membership(s *settings, address string) (m membership, fresh bool, err error) {
	there, err := readFile(s.memberFile(), &m)
	if err != nil {
		return m, false, err
	}
	if address == "" && f.nats == "" {
		switch {
		case f.token != "" || f.creds != "" || f.name != "":
			return m, false, wrong("join what? want ADDRESS with --token, or --nats URL")
		case !there:
			return m, false, wrong("this machine is in no fleet yet: want ADDRESS --token TOKEN; on the hub, outlive fleet token make NAME makes one")
		case f.permissions:
			return m, false, wrong("--permissions is said when the machine joins: want ADDRESS or --nats, too")
		}
		return m, false, nil
	}
	next := membership{Version: fileVersion, Machine: m.Machine, Permissions: f.permissions}
	if f.nats != "" {
		err = f.ownServer(&next, address)
		return next, true, err
	}
	if f.creds != "" || f.name != "" {
		return m, false, wrong("--creds and --name go with --nats: the token says what this machine is called")
	}
	if strings.Contains(address, ",") {
		return m, false, wrong("%q: %s", address, noCluster)
	}
	if next.Address, err = hostPort(address, defaultPort); err != nil {
		return m, false, wrong("%q: want HOST or HOST:PORT of the hub", address)
	}
	text := f.token
	switch {
	case text == "" && there && m.Token != "":
		text = m.Token // the hub has moved
	case text == "":
		return m, false, wrong("--token is missing: on the hub, outlive fleet token make NAME makes one for this machine")
	case text == "-":
		line, err := io.ReadAll(io.LimitReader(os.Stdin, 4<<10))
		if err != nil {
			return m, false, err
		}
		text = strings.TrimSpace(string(line))
	}
	t, err := parseToken(text)
	if err != nil {
		return m, false, err
	}
	next.Host, next.Token = t.Host, text
	return next, true, nil
}

// machine tells this machine from others with the same token, until it has joined. It is kept before a hub hears of it: where joining fails
// then, the hub may have written down that this machine uses the token.
func (s *settings) machine() (string, error) {
	var m membership
	there, err := readFile(s.machineFile(), &m)
	if err == nil && !there {
		m = membership{Version: fileVersion, Machine: rand.Text()}
		err = writeFile(s.machineFile(), m)
	}
	return m.Machine, err
}

func (f joining) ownServer(m *membership, address string) (err error) {
	if address != "" || f.token != "" {
		return wrong("--nats is in place of ADDRESS and --token: leave out one of the two")
	}
	if scheme, _, ok := strings.Cut(f.nats, "://"); !ok || scheme != "nats" && scheme != "tls" && scheme != "ws" && scheme != "wss" {
		return wrong("--nats %s: want nats://HOST:PORT or tls://HOST:PORT", f.nats)
	}
	m.NATS, m.Host = f.nats, f.name
	if f.creds != "" {
		if m.Creds, err = filepath.Abs(f.creds); err == nil {
			_, err = os.Stat(m.Creds)
		}
		if err != nil {
			return wrong("--creds: %v", err)
		}
	}
	if m.Host == "" {
		if m.Host, err = os.Hostname(); err != nil {
			return wrong("--name is missing: %v", err)
		}
	}
	if err := checkName(m.Host); err != nil {
		return wrong("--name: %v", err)
	}
	return nil
}

var errAddress = errors.New("want HOST or HOST:PORT")

// hostPort is an address with its port.
func hostPort(text, port string) (string, error) {
	host := strings.Trim(text, "[]")
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	}
	if host == "" || strings.ContainsAny(host, "/@ ,?#") || strings.ContainsAny(port, "/") {
		return "", errAddress
	}
	return net.JoinHostPort(host, port), nil
}

// member is this machine in a fleet.
type member struct {
	*settings
	membership
	engine    connection
	log       *slog.Logger
	publisher *publisher
	view      *view
	jobs      *jobs
	judging   *judging
	link      link
	meets     func(ctx context.Context, digest []byte) (older []string, err error) // see [member.meetOlder]; nil: it is at a hub
	end       context.CancelCauseFunc
}

// connection is the engine of a member, which may not reach the hub for a while.
type connection interface {
	engine.Engine
	Connected() bool
}

var errLeft = errors.New("this machine has left the fleet")

func (s *settings) join(ctx context.Context, f joining, address string) error {
	m, fresh, err := f.membership(s, address)
	if err != nil {
		return err
	}
	release, err := hold(filepath.Join(s.state, "member.lock"), "a member of a fleet")
	if err != nil {
		return err
	}
	defer release()
	if m.Machine == "" {
		if m.Machine, err = s.machine(); err != nil {
			return err
		}
	}
	o, err := m.options()
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	one := &member{settings: s, membership: m, log: log, end: end}
	one.link.at = time.Now()
	one.link.why = "the hub has not answered yet"
	one.publisher, one.view, one.jobs = newPublisher(one), newView(one), newJobs(one)
	one.judging = &judging{m: one, herald: newHerald(one)}
	o.Changed = one.linkChanged
	o.Refused = func(err error) {
		if m.NATS != "" {
			end(fmt.Errorf("%s: %w: they were revoked, or have expired; outlive fleet join --nats %s --creds FILE joins with others", m.where(), err, m.NATS))
			return
		}
		end(fmt.Errorf("%s: %w: it was revoked, another machine uses it, or outlive there is another version, as the hub's log says; on the hub, outlive fleet token make makes a new one", m.where(), err))
	}
	e, err := natsengine.Connect(o, !fresh)
	if err != nil {
		if errors.Is(err, natsengine.ErrRefused) && m.NATS == "" {
			return fmt.Errorf("%w: it is wrong, was revoked, another machine has used it, or this one before it left, or outlive there is another version, as the hub's log says; on the hub, outlive fleet token revoke %s and token make %[2]s give a new one", err, m.Host)
		}
		return fmt.Errorf("join: %w", err)
	}
	defer e.Close()
	one.engine = e
	if m.NATS != "" {
		one.meets = e.MeetOlder
	}
	if fresh && m.NATS != "" {
		if err := e.MakeTables(ctx); err != nil {
			return fmt.Errorf("join %s: %w: it needs JetStream, with %d MB of room on disk, and credentials of a user for %s (outlive fleet nats-user), or one that may make key-value buckets; the servers of a cluster have to have found each other, too: look at their logs", m.NATS, err, natsengine.RoomMB(), m.Host)
		}
	}
	if fresh {
		if err := writeFile(s.memberFile(), m); err != nil {
			return err
		}
		_ = os.Remove(s.machineFile()) // it need not be there
	}
	return one.run(ctx)
}

func (m *member) run(ctx context.Context) error {
	stop, err := m.engine.Serve(judge.Address(m.Host), m.jobs.answer)
	if err != nil {
		return err
	}
	defer stop()
	listener, err := control.ListenAt(m.socket)
	if err != nil {
		return err
	}
	var parts sync.WaitGroup
	defer parts.Wait()
	if err := m.judging.begin(ctx); err != nil {
		return errors.Join(err, listener.Close())
	}
	defer m.judging.end()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts.Go(func() { m.publisher.run(ctx) })
	parts.Go(func() { m.watch(ctx) })
	parts.Go(func() { m.jobs.sweep(ctx) })
	parts.Go(func() { m.listen(ctx, listener) })
	if m.meets != nil {
		parts.Go(func() { m.meetOlder(ctx) })
	}
	fmt.Fprintf(os.Stderr, "This machine is %s in the fleet of %s.\n", m.Host, m.where())
	<-ctx.Done()
	if err := context.Cause(ctx); errors.Is(err, natsengine.ErrRefused) {
		return err
	}
	return nil
}

// leaveLimit is longer than leaving takes where the hub answers nothing: the lease is given up, and what it has of this machine deleted.
const leaveLimit = 4 * askLimit

// leave deletes what the fleet has of this machine, and what this machine has of the fleet.
func (m *member) leave(ctx context.Context) error {
	m.publisher.stop() // nothing is written after it was deleted
	m.judging.end()
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	var failed error
	for _, table := range tables {
		if err := m.engine.Delete(ctx, engine.Key(table, m.Host)); err != nil {
			failed = err
		}
	}
	err := errors.Join(forgetFile(m.memberFile()), forgetFile(m.casesFile())) // the monitor closes the cases that it has
	m.end(errLeft)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return fmt.Errorf("this machine has left, but the fleet could not be told (%w): %s", failed, m.revoking())
	}
	return nil
}

// link is how the connection to the hub stands.
type link struct {
	mu        sync.Mutex
	connected bool
	at        time.Time // since when
	why       string
}

func (m *member) linkChanged(hub string, err error) {
	l := &m.link
	l.mu.Lock()
	changed := l.connected != (err == nil)
	if changed {
		l.connected, l.at = err == nil, time.Now()
	}
	if l.why = ""; err != nil {
		l.why = err.Error()
	}
	l.mu.Unlock()
	switch {
	case changed && err == nil:
		m.log.Info("connected to the hub", "hub", hub)
		m.publisher.again()
	case changed:
		m.log.Warn("no connection to the hub; it is tried again", "why", err)
	}
	m.view.linked(changed && err == nil)
}

func (m *member) linkNow() (connected bool, since time.Time, why string) {
	m.link.mu.Lock()
	defer m.link.mu.Unlock()
	return m.link.connected, m.link.at, m.link.why
}

// meetOlder looks once whether machines with an older outlive have joined the same NATS servers, and tells people here and there.
func (m *member) meetOlder(ctx context.Context) {
	for !m.engine.Connected() {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tryAgain):
		}
	}
	word, _ := json.Marshal(judge.Digest{Format: formatKnown, Incarnation: rand.Text(), Beat: 1, At: time.Now().UTC(), Version: m.release + ", which this outlive does not see: upgrade it"})
	if older, _ := m.meets(ctx, word); len(older) > 0 { // an error says that there are none, or that this machine may not ask
		m.view.meet(older)
		m.log.Warn("machines that have joined these servers with an older outlive, and this one, do not see each other: upgrade them", "machines", older)
	}
}

// unwritten is since when nothing is written, though there is a connection, and the likely cause; zero: that is not so.
func (m *member) unwritten() (since time.Time, why string) {
	connected, since, _ := m.linkNow()
	last := m.publisher.lastTaken()
	if since.After(last) {
		last = since
	}
	if !connected || m.publisher.lastTaken().IsZero() || time.Since(last) < unwrittenAfter {
		return time.Time{}, ""
	}
	if m.NATS != "" {
		return last, "most of the NATS servers are down, do not reach each other, or have this machine's user from another version of outlive"
	}
	return last, "the hub takes nothing: its disk may be full, or its outlive another version"
}

func newLeave(s *settings) *cobra.Command {
	return &cobra.Command{
		Use: "leave", Short: "Take this machine out of its fleet", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var m membership
			there, err := readFile(s.memberFile(), &m)
			if err != nil {
				return err
			}
			if !there {
				return errors.New("this machine is in no fleet")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), leaveLimit)
			defer cancel()
			var gone *fleetsocket.Ending
			err = fleetsocket.Client{Path: s.socket}.Leave(ctx)
			switch {
			case errors.As(err, &gone): // no member runs
				if err := forgetFile(s.casesFile()); err != nil {
					return err
				}
				if err := os.Remove(s.memberFile()); err != nil {
					return err
				}
				fmt.Printf("This machine has left. No member was running to tell the others: %s\n", m.revoking())
			case errors.Is(err, context.DeadlineExceeded):
				return fmt.Errorf("the member of this machine has not answered within %s; outlive fleet status says whether it has left", leaveLimit)
			case err != nil:
				return err
			default:
				fmt.Printf("This machine has left. So that nobody is let in as this machine: %s\n", m.revoking())
				if m.NATS == "" {
					fmt.Printf("To join again it needs a new token, after that: outlive fleet token make %s\n", m.Host)
				}
			}
			return nil
		},
	}
}
