package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/dashboard"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const dashboardLong = `Serve a page that shows everything outlive keeps alive for this user on this machine, as it changes: each server and agent
with its state, since when and why; the last 24 hours; restarts with cause, gap and who asked; calls by tool; incidents; events.

Open the link that is printed: its token becomes a cookie of that browser, and nobody without it gets anything. Where the system
tells whose a connection is (Linux), other users get nothing with it either. Nothing on the page changes anything unless --control
is given: then servers can be restarted, and incidents acknowledged and answered. It listens on this machine only; to look from
elsewhere: ssh -L 8420:127.0.0.1:8420 MACHINE.

EXIT STATUS
  0  interrupted
  1  it cannot listen there
  2  a mistake in the command line`

// dashboardFlags are the flags of the verb.
type dashboardFlags struct {
	listen, home  string
	control, open bool
	on            hostFlags
}

func newDashboard(io streams) *cobra.Command {
	var f dashboardFlags
	cmd := &cobra.Command{
		Use:     "dashboard",
		Short:   "Show all servers and agents on a page in the browser",
		Long:    dashboardLong,
		Example: "  outlive dashboard --open\n  outlive dashboard --listen 127.0.0.1:8420 --control",
		Args:    takes(0, 0),
		RunE:    interruptibly(func(ctx context.Context, _ []string) error { return f.serve(ctx, io) }),
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8420", "address of this machine, and port; port 0: any that is free")
	fl.BoolVar(&f.control, "control", false, "buttons that restart servers, and acknowledge and answer incidents")
	fl.BoolVar(&f.open, "open", false, "open the page in the desktop's browser")
	defineHome(fl, &f.home)
	f.on.define(cmd)
	return cmd
}

// seen are what a page or a screen shows, and what its buttons are carried out with: other machines, or nil for this one.
func (f *hostFlags) seen(ctx context.Context, home string) (collect.Options, *hosts.Set, error) {
	o := collect.Options{History: true, Curves: true, Version: version()}
	if f.given() {
		set, err := f.remotes(ctx, &o, home)
		return o, set, err
	}
	_, err := lookOptions(home)
	o.Dirs, o.Audit = socketDirs(), auditLogs
	return o, nil, err
}

// loopbackOnly says why an address is not to be listened on: the page has no encryption.
func loopbackOnly(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--listen %s: want 127.0.0.1:PORT", address)
	}
	if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("--listen %s: the page is for this machine only: want 127.0.0.1:PORT; from elsewhere use ssh -L", address)
	}
	return nil
}

// dashboardGC is the dashboard's GOGC (Go's default: 100): it is open all day, and makes its picture anew at every change. GOGC in
// the environment overrides it.
const dashboardGC = 25

func (f dashboardFlags) serve(ctx context.Context, streams streams) error {
	if err := loopbackOnly(f.listen); err != nil {
		return fail(exitUsage, "%w", err)
	}
	what, set, err := f.on.seen(ctx, f.home)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fail(exitFailure, "%w: perhaps another dashboard runs, to which %s leads; --listen 127.0.0.1:0 takes any port that is free", err, linkFile())
	}
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	defer seeHome(&what, f.home)()
	c := collect.New(what)
	defer c.Close()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(dashboardGC)
	}
	debug.FreeOSMemory()                                      // what it took to read a day of events
	_, port, _ := net.SplitHostPort(listener.Addr().String()) // it has one
	opts := dashboard.Options{Source: c, Port: port, AgentText: agentText, Version: version(), Metrics: serveMetrics(f.home)}
	if f.control {
		opts.Control = controls{c, f.home, "on the dashboard", set}
	}
	if peer.TellsTCP() {
		opts.Peer = ownUserOnly
	}
	d := dashboard.New(opts)
	server := &http.Server{Handler: d, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	link := "http://" + listener.Addr().String() + "/?token=" + d.Token()
	fmt.Fprintln(streams.out, link)
	err = keepLink(link)
	if err == nil && f.open {
		err = openLink()
	}
	switch {
	case err != nil && f.open:
		fmt.Fprintf(streams.err, "outlive: the browser could not be opened: %v; open the link\n", err)
	case err != nil:
		fmt.Fprintf(streams.err, "outlive: no file leads to the page: %v\n", err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case <-ctx.Done():
		_ = server.Close() // pages that are open come again when it does
		<-served
		return nil
	case err := <-served:
		return fail(exitFailure, "serve: %w", err)
	}
}

// linkFile leads a browser to the dashboard that was started last.
func linkFile() string { return filepath.Join(stateDir(), "dashboard.html") }

// keepLink writes the link to that file, which only this user can read. A dashboard that is a service has no other place to show it.
func keepLink(link string) error {
	if err := os.MkdirAll(stateDir(), 0o700); err != nil {
		return err
	}
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>outlive</title><meta http-equiv="refresh" content="0; url=` +
		html.EscapeString(link) + `"><a href="` + html.EscapeString(link) + `">outlive dashboard</a>`
	return atomicfile.Write(linkFile(), []byte(text))
}

// openLink opens the link by way of its file: every user sees the arguments of a program.
func openLink() error {
	opener := pageOpener(linkFile())
	if opener == nil {
		return errors.New("there is no desktop here")
	}
	open(opener)
	return nil
}

// auditLogs are the files that runs keep their events in by default.
func auditLogs() (paths []string) {
	for _, pattern := range []string{"*.jsonl", "*.jsonl.1"} {
		found, _ := filepath.Glob(filepath.Join(stateDir(), "audit", pattern)) // the pattern is right
		paths = append(paths, found...)
	}
	return paths
}

const agentTextShown = 128 << 10 // bytes of an agent's output that are made text

// agentText is the end of an agent's output as text.
func agentText(path string) (string, error) {
	end, err := collect.End(path, agentTextShown)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	text := agentrun.NewText(&b)
	_, _ = io.WriteString(text, end) // a builder takes everything
	err = text.Close()
	return b.String(), err
}

// controls are the buttons of a page, and the keys of a screen: they implement dashboard.Controls and top.Controls.
type controls struct {
	seen  *collect.Collector
	home  string
	where string     // they are, for the record
	on    *hosts.Set // the machines that are shown; nil: this one
}

// restartPatience is how long a page waits for a restart.
const restartPatience = 30 * time.Second

func (c controls) Restart(ctx context.Context, s overview.Server) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, restartPatience)
	defer cancel()
	defer c.seen.LookSoon()
	reason := "restarted " + c.where + " by " + userName()
	if s.Host != "" {
		return c.there(ctx, s.Host, "restart", overview.There(s.Host, s.Key), "--reason", reason, "--timeout", restartPatience.String())
	}
	r, err := s.Instance.Restart(ctx, control.Order{Reason: reason})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s was restarted in %d ms (PID %d)", s.Name, r.TookMS, r.ServerPID), nil
}

func (c controls) Press(ctx context.Context, id string, b overview.Button) (string, error) {
	defer c.seen.LookSoon()
	if host, there, ok := strings.Cut(id, "/"); ok && c.on != nil {
		return c.there(ctx, host, homeArgs([]string{"press", there, b.Verb, b.Target}, c.home)...)
	}
	return pressed(ctx, c.home, id, b.Verb, b.Target)
}

// there has outlive on a host do something, and returns what it says.
func (c controls) there(ctx context.Context, host string, args ...string) (string, error) {
	h, ok := c.on.Named(host)
	if !ok {
		return "", fmt.Errorf("%s is no host of this page", host)
	}
	var out bytes.Buffer
	a := c.on.Within(restartPatience).Run(ctx, h, hosts.Command{Args: args, Out: &out})
	if a.Err != nil {
		return "", fmt.Errorf("%s: %w", host, a.Err)
	}
	return host + ": " + strings.TrimSpace(out.String()), nil
}

// newPress is what the buttons of a page on another machine are carried out with.
func newPress(io streams) *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use:         "press INCIDENT VERB [TARGET]",
		Short:       "Do what a button of an incident stands for",
		Hidden:      true, // pages on other machines call it
		Args:        takes(2, 3),
		Annotations: map[string]string{forOthers: "home"},
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := pressed(cmd.Context(), home, args[0], args[1], strings.Join(args[2:], ""))
			if err != nil {
				return fail(exitFailure, "%w", err)
			}
			_, err = fmt.Fprintln(io.out, answer)
			return err
		},
	}
	defineHome(cmd.Flags(), &home)
	return cmd
}
