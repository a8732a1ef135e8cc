package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
	"github.com/outlive-mcp/outlive/internal/fleet/sessions"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/replica"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

// noFleetSessions is the error of a gateway that has no core on another machine.
func noFleetSessions() error {
	return fail(exitUsage, "sessions: fleet is for cores on several machines, of which one has the sessions: --core --core-listen ADDRESS --core-secret-file FILE; without them write sessions: disk")
}

// errInterruptedStandby is the end of a core that was interrupted while it waited.
var errInterruptedStandby = errors.New("interrupted while another machine had the sessions")

// releaseWithin is how long giving the sessions up may take. Without it others wait for the lease to end by itself.
const releaseWithin = 3 * time.Second

// tellWaitEvery is how often a waiting core looks whether the reason why it waits has changed.
const tellWaitEvery = 5 * time.Second

// memberPatience is longer than a member waits for its hub before it answers with what it knows.
const memberPatience = 10 * time.Second

// askMemberEvery is how often a core asks a member that does not answer.
const askMemberEvery = 500 * time.Millisecond

// turn is a core's time with sessions that are in the fleet. Methods of nil are those of a core whose sessions are not.
type turn struct {
	held  *lease.Held
	store *sessions.Store
}

// holderLimit is the longest name of a lease's holder that is read from a file, in bytes.
const holderLimit = 1 << 10

// standBy waits until this core has the gateway's sessions. at is a file with the holder of the lease that a core here had last. That has
// ended, so its time is gone on with: a core that was killed does not wait for the end of its own lease.
func (g *endpoint) standBy(ctx context.Context, link *replica.Link, at string) error {
	if err := checkStandby(g.begun, g.path); err != nil {
		return err
	}
	if link == nil {
		return noFleetSessions()
	}
	waiting, end := context.WithCancel(ctx)
	defer end()
	registry := fleetRegistry{fleetsocket.Client{Path: fleetSocket()}}
	seen := &reachableStandby{g: g, config: g.begun.Name, end: end}
	defer listenControl(g.sinks, g.flags.name, "this core while it waits", seen)()
	defer handleSignals(seen, g.sinks)()
	told := make(chan struct{})
	telling, enough := context.WithCancel(waiting)
	go func() {
		defer close(told)
		seen.tell(telling, registry, sessions.Lease(link.Name))
	}()
	defer func() { enough(); <-told }()

	machine, err := registry.awaitMachine(waiting)
	if err != nil {
		return g.interruptedStandby()
	}
	opts := sessions.LeaseOptions()
	opts.Holder = cmp.Or(g.left().Holder, lastHolder(at, machine))
	holding, giveUp := context.WithCancel(context.WithoutCancel(ctx)) // it is released when ctx ends
	forget := context.AfterFunc(waiting, giveUp)
	held, err := lease.Acquire(holding, registry, sessions.Lease(link.Name), machine, opts)
	if err != nil {
		giveUp()
		return g.interruptedStandby()
	}
	forget()
	g.turn = &turn{held: held}
	if err := atomicfile.Write(at, []byte(g.turn.holder())); err != nil {
		g.warn("A core that is killed and started again waits until its lease is over: " + err.Error())
	}
	g.readAgain()
	if waiting.Err() != nil {
		return g.interruptedStandby()
	}
	g.turn.store, err = sessions.New(registry, sessions.Options{Gateway: link.Name, Key: link.SessionKey, Turn: held})
	return err
}

// readAgain reads the configuration again if it has changed while this core waited, perhaps for weeks: it is to do what the core before it has
// done. One with mistakes is not used, as in a gateway that runs.
func (g *endpoint) readAgain() {
	if !g.differs() {
		return
	}
	file, digest, err := g.nextConfig()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.read = digest
	if err != nil {
		g.tellRejected(err)
		return
	}
	g.begun = file
	g.sinks.say(event.ConfigLoaded, "Configuration read again, since it has changed while this core waited: "+g.path, slog.Any(event.KeyFiles, []string{g.path}))
}

// nextConfig is the configuration as it is now. The error says what is wrong with it for a core whose turn may come.
func (g *endpoint) nextConfig() (*config.File, [sha256.Size]byte, error) {
	file, digest, err := loadConfig(g.path)
	if err == nil {
		err = checkStandby(file, g.path)
	}
	if err == nil {
		_, err = frontOptions(file)
	}
	if err == nil {
		_, err = newServedSet(g.sinks, g.flags.name, g.flags.login(g.path), g.flags.browser).load(file)
	}
	return file, digest, err
}

// checkStandby rejects what a core whose sessions are in the fleet cannot do.
func checkStandby(file *config.File, path string) error {
	if file.Sessions != config.SessionsInFleet {
		return fail(exitUsage, "%s: sessions: this core has waited for those of the fleet; for others end it, and start it again", path)
	}
	if idle := file.Limits.SessionIdle; idle > sessions.MostIdle {
		return fail(exitUsage, "%s: limits: session_idle is %v, and with sessions: fleet at most %v: records are deleted that nobody uses", path, idle, sessions.MostIdle)
	}
	return nil
}

func (g *endpoint) interruptedStandby() error {
	g.sinks.say(event.ProxyStopped, "Gateway stopped while it waited for its turn", slog.Int(event.KeyExitCode, 0))
	return errInterruptedStandby
}

// lastHolder is the holder of the lease that a core here had last; "": there was none. That of another machine, whose disk was copied, may
// still have it.
func lastHolder(at, machine string) string {
	text, _ := atomicfile.Read(at, holderLimit) // there may be none
	if holder := string(text); strings.HasPrefix(holder, machine+"/") {
		return holder
	}
	return ""
}

// tell reports why it waits, and when that has changed, until ctx ends.
func (r *reachableStandby) tell(ctx context.Context, registry fleetRegistry, name string) {
	wait := time.NewTimer(time.Second) // mostly nobody has them
	defer wait.Stop()
	machine := ""
	for last := ""; ; wait.Reset(tellWaitEvery) {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		owner, err := lease.Owner(ctx, registry, name)
		if err == nil && machine == "" {
			machine, err = registry.machine(ctx)
		}
		text := "The machine " + owner + " has the sessions of this gateway"
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			text = "The sessions of this gateway are in the fleet, which cannot be asked: " + err.Error()
		case owner == machine:
			text = "Another core on this machine has the sessions of this gateway, or has had them until a moment ago"
		case owner == "":
			continue
		}
		if text != last {
			r.why.Store(&text)
			r.g.sinks.say(event.CoreWaits, text+"; this core waits for its turn", slog.String(event.KeyReason, text))
		}
		last = text
	}
}

// serves reports whether the sessions are ours, by the clock.
func (t *turn) serves() bool {
	if t == nil {
		return true
	}
	_, err := t.held.Term()
	return err == nil
}

// holder goes on with our time, in the image that takes our place.
func (t *turn) holder() string {
	if t == nil {
		return ""
	}
	term, _ := t.held.Term() // the zero value: a new time begins
	return term.Holder
}

// lost is an error if the sessions are not ours any more.
func (t *turn) lost() error {
	if t == nil || t.held.Context().Err() == nil {
		return nil
	}
	why := context.Cause(t.held.Context())
	if errors.Is(why, lease.ErrUnanswered) {
		why = fmt.Errorf("the fleet could not be reached from here, or this process was stopped, for so long that another core may have the sessions of this gateway (%w)", why)
	}
	return fail(exitFailure, "%w; started again, this core waits for its turn", why)
}

// watch ends the gateway when the sessions are not ours any more, until stop is called.
func (t *turn) watch(g *endpoint) (stop func()) {
	if t == nil {
		return func() {}
	}
	forget := context.AfterFunc(t.held.Context(), func() {
		err := t.lost()
		g.sinks.warn(event.CoreReplaced, "This core ends: "+err.Error(), slog.String(event.KeyError, err.Error()))
		g.Interrupt()
	})
	return func() { forget() }
}

// end lets another core have the sessions.
func (t *turn) end() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), releaseWithin)
	defer cancel()
	_ = t.held.Release(ctx) // otherwise others wait until it ends by itself
}

// fleetRegistry is the registry of the fleet, by this machine's member. It implements sessions.Registry.
type fleetRegistry struct{ client fleetsocket.Client }

// machine is what this machine is called in the fleet.
func (r fleetRegistry) machine(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, memberPatience)
	defer cancel()
	s, err := r.client.Status(ctx)
	return s.Host, err
}

// awaitMachine is machine, once this machine's member answers. Any other name would have this core wait for its own lease when it is killed
// and started again. The error is ctx's.
func (r fleetRegistry) awaitMachine(ctx context.Context) (string, error) {
	for {
		if name, err := r.machine(ctx); err == nil {
			return name, nil
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(askMemberEvery):
		}
	}
}

func (r fleetRegistry) do(ctx context.Context, e fleetsocket.Entry) (fleetsocket.EntryAnswer, error) {
	a, err := r.client.Entry(ctx, e)
	if err != nil {
		return a, unanswered(err.Error())
	}
	switch a.Refused {
	case "":
		return a, nil
	case fleetsocket.NotFound:
		return a, engine.ErrNotFound
	case fleetsocket.Conflict:
		return a, engine.ErrConflict
	case fleetsocket.TooLarge:
		return a, engine.ErrTooLarge
	}
	return a, unanswered("the hub does not answer (" + strings.TrimPrefix(a.Why, engine.ErrUnknown.Error()+": ") + ")")
}

// unanswered is engine.ErrUnknown in words for people.
type unanswered string

func (u unanswered) Error() string { return string(u) }

func (u unanswered) Is(target error) bool { return target == engine.ErrUnknown }

func (r fleetRegistry) Get(ctx context.Context, key string) (engine.Entry, error) {
	a, err := r.do(ctx, fleetsocket.Entry{Op: fleetsocket.Get, Key: key})
	if err != nil {
		return engine.Entry{}, err
	}
	return engine.Entry{Key: key, Value: a.Value, Revision: engine.Revision(a.Revision)}, nil
}

func (r fleetRegistry) CAS(ctx context.Context, key string, value []byte, before engine.Revision) (engine.Revision, error) {
	a, err := r.do(ctx, fleetsocket.Entry{Op: fleetsocket.Write, Key: key, Value: value, Before: uint64(before)})
	return engine.Revision(a.Revision), err
}

func (r fleetRegistry) Delete(ctx context.Context, key string) error {
	_, err := r.do(ctx, fleetsocket.Entry{Op: fleetsocket.Delete, Key: key})
	return err
}

// stateStandby is the state of a core that waits for its turn.
const stateStandby = "standby"

// reachableStandby implements control.Source for a core that waits for its turn.
type reachableStandby struct {
	g   *endpoint
	end func()

	config string                 // its name at the start
	why    atomic.Pointer[string] // it waits; nil: it has not been told yet
}

func (r *reachableStandby) Status() control.Status {
	s := r.g.sinks.status(backend.Status{Name: r.g.flags.name, State: stateStandby})
	s.Upgrades, s.Config = r.g.upgrades(), r.config
	if r.g.path != "" {
		s.Config, _ = filepath.Abs(r.g.path) // it fails only without a working directory
	}
	if why := r.why.Load(); why != nil {
		s.Waits = *why
	}
	return s
}

// Used implements control.Source: there are no servers.
func (r *reachableStandby) Used() control.Status { return control.Status{} }

// errInStandby is why nothing is done.
var errInStandby = errors.New("this core waits for its turn, and has no servers until then")

func (r *reachableStandby) Restart(context.Context, control.Order) (control.Result, error) {
	return control.Result{}, errInStandby
}

// Interrupt ends the waiting, and with it the core.
func (r *reachableStandby) Interrupt() { r.end() }

// Reload implements control.Source. It says what is wrong with the configuration, which is read when the turn comes.
func (r *reachableStandby) Reload() error {
	if _, _, err := r.g.nextConfig(); err != nil {
		r.g.tellRejected(err)
		return err
	}
	r.g.sinks.say(event.ConfigLoaded, "The configuration has no mistakes: "+r.g.path+"; it is used when this core's turn comes", slog.Any(event.KeyFiles, []string{r.g.path}))
	return nil
}

func (r *reachableStandby) Upgrade(context.Context, time.Duration) error {
	err := fmt.Errorf("%w: end it and start it again", errInStandby)
	r.g.sinks.say(event.UpgradeFailed, "No upgrade: "+err.Error(), slog.String(event.KeyError, err.Error()))
	return err
}

func (r *reachableStandby) Log(context.Context, string, io.Writer, bool) error { return errInStandby }
