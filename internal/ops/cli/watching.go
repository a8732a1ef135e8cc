package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// watchEvery is how often outlive watch looks for runs that have begun since.
const watchEvery = 250 * time.Millisecond

const watchLong = `Show what happens to the servers and agents of this user on this machine, as it happens: the events of every running
outlive, of those that start later, and what the monitor sees and does. One line for each event, until interrupted.

NAME is a server, a gateway, a server behind it (GATEWAY/SERVER), an agent or another machine: only what is about these is shown.
People are not shown what is for debugging, nor the single steps of a restart, unless with --level debug.

With --since the events of the audit logs from then on come first: of all runs and gateways, also of those that have ended, but not
the monitor's. With --no-follow that is all.

With --json each line is that of the audit log with "instance", the name that other verbs take; events of the monitor have "agent"
in place of it. With --state there are lines {"state": {…}}, too: how everything stands, at the beginning, after each event, and
every two seconds. The events and their fields: https://github.com/outlive-mcp/outlive/blob/main/docs/OPERATIONS.md#audit-log

EXIT STATUS
  0  interrupted; with --no-follow: shown
  1  the sockets could not be read`

// watchFlags are the flags of the verb.
type watchFlags struct {
	home                   string
	asJSON, state, history bool
	since                  string
	noFollow               bool
	level                  string
	only                   overview.Filter
	on                     hostFlags
}

func newWatchEvents(io streams) *cobra.Command {
	var f watchFlags
	cmd := &cobra.Command{
		Use:   "watch [NAME...]",
		Short: "Show events of all servers and agents as they happen",
		Long:  watchLong,
		Args:  takes(0, -1),

		ValidArgsFunction: completeRunning,
		RunE: interruptibly(func(ctx context.Context, names []string) error {
			f.only.About = names
			return f.watch(ctx, io)
		}),
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.asJSON, "json", false, "one JSON object a line")
	fl.BoolVar(&f.state, "state", false, "with --json: also how everything stands, whenever it may have changed")
	fl.BoolVar(&f.history, "history", false, "with --state: the first state also has the events of the last 24 hours")
	fl.StringVar(&f.since, "since", "", "first the past: how long ago it begins, or its beginning, as `TIME`, such as 2h or 2026-05-04T12:00:00Z")
	fl.BoolVar(&f.noFollow, "no-follow", false, "with --since: nothing but the past")
	fl.StringVar(&f.level, "level", "", "show events of this `LEVEL` and above: debug, info, warning or error (default info; with --json debug)")
	_ = fl.SetAnnotation("level", wordsOf, watchLevels) // the flag is there
	defineHome(fl, &f.home)
	f.on.define(cmd)
	return cmd
}

// watchLevels are the words of --level.
var watchLevels = []string{"debug", "info", "warning", "error"}

// choose sets the least level that is shown.
func (f *watchFlags) choose() error {
	f.only.Level, f.only.Brief = strings.ToUpper(f.level), !f.asJSON && f.level != watchLevels[0]
	switch {
	case f.level == "" && !f.asJSON:
		f.only.Level = event.LevelName(slog.LevelInfo)
	case f.level == "":
	case !slices.Contains(watchLevels, f.level):
		return fail(exitUsage, "--level %q: want %s", f.level, strings.Join(watchLevels, ", "))
	}
	return nil
}

// options are what is watched.
func (f *watchFlags) options(ctx context.Context) (collect.Options, error) {
	if err := f.choose(); err != nil {
		return collect.Options{}, err
	}
	switch {
	case f.state && !f.asJSON:
		return collect.Options{}, fail(exitUsage, "--state is for programs: give --json with it")
	case f.history && !f.state:
		return collect.Options{}, fail(exitUsage, "--history goes with --state")
	case f.noFollow && f.since == "":
		return collect.Options{}, fail(exitUsage, "--no-follow goes with --since")
	case f.since != "" && (f.history || f.on.given()):
		return collect.Options{}, fail(exitUsage, "--since is of this machine, and the past by itself: leave out --history, --hosts and --fleet")
	case f.on.given() && f.state:
		return collect.Options{}, fail(exitUsage, "--state is of this machine: leave out --hosts and --fleet")
	}
	o := collect.Options{Every: watchEvery, Version: version()}
	if f.on.given() {
		_, err := f.on.remotes(ctx, &o, f.home)
		return o, err
	}
	if _, err := askAll(ctx); err != nil {
		return o, fail(exitFailure, "%w", err)
	}
	o.Dirs = socketDirs()
	if f.state {
		o.Every, o.HomeEvery = stateLook, stateLook
	}
	if f.history {
		o.History, o.Audit = true, auditLogs
	}
	return o, nil
}

func (f *watchFlags) watch(ctx context.Context, io streams) error {
	o, err := f.options(ctx)
	if err != nil {
		return err
	}
	w := &watching{io: io, asJSON: f.asJSON, only: f.only, out: logline.NewScreen(io.out), since: time.Now(), failed: make(chan error, 1)}
	if f.since != "" {
		if w.since, err = sinceTime(f.since, w.since); err != nil {
			return err
		}
		w.writePast(w.since)
		o.History = true // what the running ones have told since, and is not in their logs yet
	}
	if f.noFollow {
		return w.ended()
	}
	defer seeHome(&o, f.home)()
	o.OnEvent = w.event
	c := collect.New(o)
	defer c.Close()
	news, stop := c.Listen()
	defer stop()
	if f.state {
		w.state(c, f.history)
	}
	every := time.NewTicker(o.Every)
	defer every.Stop()
	for {
		c.State() // keeps it looking often
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.failed:
			return fail(exitFailure, "%w", err)
		case <-news:
			if f.state && w.stateDue() {
				w.state(c, false)
			}
		case <-every.C:
		}
	}
}

const (
	stateLook   = time.Second     // between two looks with --state
	stateEvery  = 2 * time.Second // between two states if nothing happens
	historyMost = 2000            // events that --history has
)

// watching is what outlive watch writes.
type watching struct {
	io     streams
	asJSON bool
	only   overview.Filter
	out    io.Writer                  // for people
	since  time.Time                  // what was before that is the past
	past   map[overview.EventKey]bool // that was written
	failed chan error

	mu      sync.Mutex
	changed bool // since the last state
	told    time.Time
}

// event writes an event. The past, which only the first state has, is left out.
func (w *watching) event(e overview.Event, line []byte) {
	if e.At.Before(w.since) && e.Host == "" && line != nil {
		return
	}
	if w.past[e.Key()] {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = true
	if !w.only.Shows(e) {
		return
	}
	if w.asJSON {
		w.write(eventJSON(e, line))
		return
	}
	_, err := fmt.Fprintln(w.out, eventText(e))
	w.note(err)
}

func (w *watching) write(line []byte) {
	_, err := w.io.out.Write(append(line, '\n'))
	w.note(err)
}

func (w *watching) note(err error) {
	if err != nil {
		select {
		case w.failed <- err:
		default:
		}
	}
}

// ended is the error that writing has failed with.
func (w *watching) ended() error {
	select {
	case err := <-w.failed:
		return fail(exitFailure, "%w", err)
	default:
		return nil
	}
}

func (w *watching) stateDue() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.changed || time.Since(w.told) >= stateEvery
}

// state writes how everything stands.
func (w *watching) state(c *collect.Collector, history bool) {
	s := overview.SnapshotOf(c.Seen(), version())
	if history {
		s.Events = slices.DeleteFunc(c.Events(overview.Filter{}, historyMost), func(e overview.Event) bool { return !e.At.Before(w.since) })
	}
	line, err := collect.StateLine(s, false)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed, w.told = false, time.Now()
	if err != nil {
		w.note(err)
		return
	}
	w.write(line)
}

// remotes has a collector follow the hosts, from the past on if that is to be shown.
func (f *hostFlags) remotes(ctx context.Context, o *collect.Options, home string) (*hosts.Set, error) {
	set, err := f.set(ctx)
	switch {
	case err != nil:
		return nil, err
	case f.fleet:
		f.followFleet(o, set)
		return set, nil
	}
	args := homeArgs([]string{"watch", "--json", "--state"}, home)
	if o.History {
		args = append(args, "--history")
	}
	for _, h := range set.Hosts {
		o.Remotes = append(o.Remotes, remoteHost{set, h, args})
	}
	return set, nil
}

// remoteHost implements collect.Remote.
type remoteHost struct {
	set  *hosts.Set
	host hosts.Host
	args []string
}

func (r remoteHost) Name() string { return r.host.Name }

func (r remoteHost) Follow(ctx context.Context, each func(line []byte)) (word string, err error) {
	err = r.set.Follow(ctx, r.host, r.args, each)
	return hosts.KindOf(err).Word(), err
}

// eventText is one event for people.
func eventText(e overview.Event) string {
	who := e.Instance
	switch {
	case e.Agent != "" && e.Host != "":
		who = e.Host + "/monitor"
	case who == "" && e.Host != "":
		who = e.Host
	case e.Agent != "" || who == "":
		who = "monitor"
	}
	clock := e.At.Local().Format("15:04:05.000")
	if now := time.Now().Local(); e.At.Local().Format(time.DateOnly) != now.Format(time.DateOnly) {
		clock = e.At.Local().Format("2006-01-02 15:04:05.000")
	}
	return clock + " " + who + ": " + e.Message
}

// eventJSON is one event for programs: the line of the audit log with the instance, or the same fields of the monitor's. That of
// another machine has the instance, and gets the host.
func eventJSON(e overview.Event, line []byte) []byte {
	if line == nil {
		line, _ = json.Marshal(e) // strings and numbers only: no error
		if e.Host == "" {
			return line
		}
	}
	key, name := "instance", e.Instance
	if e.Host != "" {
		key, name = "host", e.Host
	}
	whose, _ := json.Marshal(map[string]string{key: name}) // strings only: no error
	return slices.Concat(whose[:len(whose)-1], []byte{','}, bytes.TrimSpace(line)[1:])
}
