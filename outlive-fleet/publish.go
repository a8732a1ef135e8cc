package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/fleet/seen"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	beatEvery   = judge.Beat             // between two digests
	stateEvery  = time.Minute            // between two whole states if nothing changes
	beatLimit   = 2 * time.Second        // for a digest to be written, before it is tried again
	beatAgain   = 500 * time.Millisecond // before what could not be written is tried again
	askLimit    = 5 * time.Second        // for one answer of the hub
	newsKept    = 200                    // events
	newsBytes   = 128 << 10              // of all events that are kept
	watchAgain  = 2 * time.Second        // before the child that watches is started again
	lineLimit   = 64 << 20               // bytes of one of its lines
	stateLimit  = 8<<20 + 1              // bytes of a state that is unpacked: more than is read
	formatKnown = judge.Format           // of what is written to the hub
)

// unwrittenAfter is how long no digest may be taken until nothing counts as known: longer than servers elect a leader.
const unwrittenAfter = 4 * beatEvery

// stated is how a machine stands, and with which of its digests it says so.
type stated struct {
	Incarnation string `json:"inc"`
	Beat        uint64 `json:"beat"`
	overview.Snapshot
}

// publisher writes to the hub what happens here. What could not be written is written later, in its newest form.
type publisher struct {
	m     *member
	wakes chan struct{}

	mu       sync.Mutex
	snapshot overview.Snapshot
	sign     string // of the snapshot: what matters of it
	have     bool
	ring     seen.Log
	since    time.Time // the last event that was told is of before; zero: there was none
	newsDue  bool
	stateDue bool
	beatDue  bool
	stopped  bool
	cut      func()     // ends what is being written; nil: nothing was yet
	marks    []mark     // our last digests, the oldest first
	taken    time.Time  // when what was written last was sent, or could have been for the first time
	shown    string     // sign of the last state that was written
	stateAt  time.Time  // when that was
	busy     sync.Mutex // held while something is written

	beat uint64 // of the goroutine that writes

	looking sync.Mutex
	looked  bool // how far the run before has told is known
}

func newPublisher(m *member) *publisher {
	return &publisher{m: m, wakes: make(chan struct{}, 1), ring: seen.NewLog(formatKnown, rand.Text())}
}

// mark is a digest of ours: the registry has written it later than at, by our clock.
type mark struct {
	revision engine.Revision
	at       time.Time
}

// note remembers a digest that was written. All younger than [silentAfter] are kept, and one that is older.
func (p *publisher) note(m mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.marks); n > 0 && p.marks[n-1].revision >= m.revision {
		p.marks = nil // the registry counts anew: it had lost everything
	}
	p.marks, p.taken = append(p.marks, m), m.at
	for len(p.marks) > 1 && m.at.Sub(p.marks[1].at) >= silentAfter {
		p.marks = p.marks[1:]
	}
}

// young reports whether another machine's digest was written after the last of ours that is older than [silentAfter]: the registry counts all
// digests, so what clock that machine has does not matter. known is false where this machine has not been there for long enough to say.
func (p *publisher) young(revision engine.Revision, now time.Time) (young, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := len(p.marks) - 1; n >= 0; n-- {
		if m := p.marks[n]; now.Sub(m.at) >= silentAfter || n == 0 && revision > m.revision {
			return revision > m.revision, true
		}
	}
	return false, false
}

// lastTaken is since when nothing that was to be written was taken; zero: nothing was to be.
func (p *publisher) lastTaken() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.taken
}

// home is the monitor's home here, as it was seen last; nil: none is known.
func (p *publisher) home() *overview.Home {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snapshot.Home
}

// again has everything written anew: the hub may have forgotten it.
func (p *publisher) again() {
	p.mu.Lock()
	p.newsDue, p.stateDue = true, true
	p.mu.Unlock()
	p.wake()
}

// beatNow has a digest written now, besides those of every beat.
func (p *publisher) beatNow() {
	p.mu.Lock()
	p.beatDue = true
	p.mu.Unlock()
	p.wake()
}

// writes reports whether this machine has something to write: otherwise not even its beats are.
func (p *publisher) writes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.have && !p.stopped
}

func (p *publisher) wake() {
	select {
	case p.wakes <- struct{}{}:
	default:
	}
}

// stop ends what is being written, and returns when nothing is written any more.
func (p *publisher) stop() {
	p.mu.Lock()
	p.stopped = true
	cut := p.cut
	p.mu.Unlock()
	if cut != nil {
		cut()
	}
	p.busy.Lock()
	defer p.busy.Unlock()
}

func (p *publisher) run(ctx context.Context) {
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	p.mu.Lock()
	p.cut = cut
	p.mu.Unlock()
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			p.leave(context.WithoutCancel(ctx))
			return
		case <-p.wakes:
		case <-beats.C:
			p.mu.Lock()
			p.beatDue = true
			p.mu.Unlock()
		}
		if p.m.engine.Connected() {
			p.write(ctx)
		}
	}
}

// leave says that this machine's program has ended as it should, so that nobody takes it for silent.
func (p *publisher) leave(ctx context.Context) {
	p.busy.Lock()
	defer p.busy.Unlock()
	p.mu.Lock()
	s := stated{Incarnation: p.ring.Run, Snapshot: p.snapshot}
	p.mu.Unlock()
	if p.writes() && p.m.engine.Connected() {
		_ = p.putDigest(ctx, s, true) // without it the others see that nothing comes any more
	}
}

// write writes what is due. An error is of the connection, which is told elsewhere: it is due again soon, since others wait for it.
func (p *publisher) write(ctx context.Context) {
	p.busy.Lock()
	defer p.busy.Unlock()
	p.mu.Lock()
	s, sign, have := stated{Incarnation: p.ring.Run, Snapshot: p.snapshot}, p.sign, p.have
	stateDue := have && (p.stateDue || sign != p.shown || time.Since(p.stateAt) >= stateEvery)
	newsDue := p.newsDue && len(p.ring.Lines) > 0
	beatDue, writes := p.beatDue || stateDue, have && !p.stopped
	if writes { // until then everything stays due
		p.stateDue, p.newsDue, p.beatDue = false, false, false
	}
	p.mu.Unlock()
	if !writes {
		return
	}
	again := func(due *bool) {
		p.mu.Lock()
		*due = true
		p.mu.Unlock()
		time.AfterFunc(beatAgain, p.wake)
	}
	if beatDue && p.putDigest(ctx, s, false) != nil {
		again(&p.beatDue)
	}
	if newsDue && p.putNews(ctx) != nil {
		again(&p.newsDue)
	}
	if stateDue {
		s.Beat = p.beat
		if p.putState(ctx, s) != nil {
			again(&p.stateDue)
		} else {
			p.mu.Lock()
			p.shown, p.stateAt = sign, time.Now()
			p.mu.Unlock()
		}
	}
}

// putDigest writes a digest; left says that it is the last one.
func (p *publisher) putDigest(ctx context.Context, s stated, left bool) error {
	p.beat++
	d := judge.Digest{
		Format: formatKnown, Incarnation: s.Incarnation, Beat: p.beat, At: time.Now().UTC(), Version: p.m.release,
		Servers: servers(s.Snapshot), Left: left, Reach: p.m.judging.herald.reach(),
	}
	if !left {
		d.Troubles = p.m.judging.troubles()
	}
	if s.Home != nil {
		d.Agents = len(s.Home.Agents)
		for _, i := range s.Home.Incidents {
			if i.Resolved.IsZero() {
				d.Incidents++
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, beatLimit)
	defer cancel()
	sent := time.Now()
	revision, err := p.put(ctx, digestTable, d)
	if err == nil {
		p.note(mark{revision, sent})
		p.m.judging.relies.Reached(sent, d.Troubles)
	}
	return err
}

// look looks once how far the run before has told, and goes on from there.
func (p *publisher) look(ctx context.Context) error {
	p.looking.Lock()
	defer p.looking.Unlock()
	if p.looked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	e, err := p.m.engine.Get(ctx, engine.Key(newsTable, p.m.Host))
	if err != nil && !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	var before seen.Log
	_ = json.Unmarshal(e.Value, &before) // then nothing of it is known
	p.mu.Lock()
	defer p.mu.Unlock()
	p.looked = true
	p.ring.GoOn(before)
	for _, line := range before.Lines {
		if e, err := overview.ParseEvent(line); err == nil {
			p.told(e)
		}
	}
	return nil
}

// told notes an event that is told, by millisecond. The lock is held.
func (p *publisher) told(e overview.Event) {
	if next := e.At.Truncate(time.Millisecond).Add(time.Millisecond); next.After(p.since) {
		p.since = next
	}
}

// watchArgs has outlive tell what happens here, first what nobody has told of: while no member ran, or no outlive watch.
func (p *publisher) watchArgs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	args := []string{"watch", "--json", "--state"}
	if !p.since.IsZero() && p.since.Before(time.Now()) { // or the clock was wrong: then what happens from now on counts
		args = append(args, "--since", p.since.UTC().Format(time.RFC3339Nano))
	}
	return args
}

// putNews writes the last events.
func (p *publisher) putNews(ctx context.Context) error {
	if err := p.look(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	ring := p.ring
	p.mu.Unlock()
	_, err := p.put(ctx, newsTable, ring)
	return err
}

func servers(s overview.Snapshot) (n int) {
	for _, i := range s.Instances {
		n += max(1, len(i.Status.Servers))
	}
	return n
}

func (p *publisher) put(ctx context.Context, table string, value any) (engine.Revision, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	return p.putText(ctx, table, text)
}

func (p *publisher) putText(ctx context.Context, table string, text []byte) (engine.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	return p.m.engine.Put(ctx, engine.Key(table, p.m.Host), text)
}

// putState writes the whole state. One that is too large is told as trouble, without its servers.
func (p *publisher) putState(ctx context.Context, s stated) error {
	text, err := packed(s)
	if err == nil {
		_, err = p.putText(ctx, stateTable, text)
	}
	if errors.Is(err, engine.ErrTooLarge) {
		s.Snapshot = overview.Snapshot{Version: s.Version, At: s.At, Trouble: append(s.Trouble, fmt.Sprintf("its state is too large for the fleet (%d bytes compressed, %d are allowed): outlive status shows it there", len(text), engine.MaxValue))}
		if text, err = packed(s); err == nil {
			_, err = p.putText(ctx, stateTable, text)
		}
	}
	return err
}

func packed(s stated) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := errors.Join(json.NewEncoder(z).Encode(s), z.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// unpacked reads a state. Members that are not known are ignored, those of another kind are passed over.
func unpacked(text []byte) (s stated, err error) {
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return s, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, stateLimit))
	if err != nil {
		return s, err
	}
	err = hosts.Decode(plain, &s)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		s.Trouble = append(s.Trouble, "outlive there is another version, and not all that it says is understood: "+err.Error())
		err = nil
	}
	return s, err
}

// line takes a line of outlive watch.
func (p *publisher) line(line []byte) {
	var l struct {
		State *overview.Snapshot `json:"state"`
	}
	if bytes.HasPrefix(line, []byte(`{"state":`)) {
		if json.Unmarshal(line, &l) != nil || l.State == nil {
			return
		}
		sign := signOf(*l.State)
		p.mu.Lock()
		first := !p.have
		if first {
			p.taken = time.Now()
		}
		p.snapshot, p.sign, p.have = *l.State, sign, true
		due := first || sign != p.shown
		p.mu.Unlock()
		if due {
			p.wake()
		}
		return
	}
	e, err := overview.ParseEvent(line)
	if err != nil || e.Type == "" || e.Level == "DEBUG" || len(line) > newsBytes/2 {
		return // it stays in the audit log here
	}
	p.mu.Lock()
	p.ring.Add(line, newsKept, newsBytes)
	p.told(e)
	p.newsDue = true
	p.mu.Unlock()
	p.wake()
}

// signOf is what of a state is told at once when it changes: not what is counted.
func signOf(s overview.Snapshot) string {
	h := sha256.New()
	for _, i := range s.Instances {
		st := i.Status
		fmt.Fprintln(h, i.Name, i.PID, i.Silent, st.State, st.ServerPID, st.Generation, st.Trouble, st.Failing, st.Login, st.ReloadFailed != nil)
		for _, one := range st.Servers {
			fmt.Fprintln(h, one.Name, one.Standing, one.Trouble)
		}
	}
	if s.Home != nil {
		fmt.Fprintln(h, s.Home.Monitor, s.Home.Trouble)
		for _, a := range s.Home.Agents {
			fmt.Fprintln(h, a.Key, a.Health, a.State, a.Class, a.PID)
		}
		for _, i := range s.Home.Incidents {
			fmt.Fprintln(h, i.ID, i.State, i.By, i.Until, i.Resolved, i.Ending)
		}
	}
	for _, t := range s.Trouble {
		fmt.Fprintln(h, t)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// watch has outlive tell what happens here, and starts it again when it ends.
func (m *member) watch(ctx context.Context) {
	_ = m.publisher.look(ctx) // without an answer it begins now
	for ctx.Err() == nil {
		err := m.watchOnce(ctx)
		if ctx.Err() != nil {
			return
		}
		m.log.Warn("outlive watch has ended; it is started again", "why", err)
		select {
		case <-ctx.Done():
		case <-time.After(watchAgain):
		}
	}
}

func (m *member) watchOnce(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, m.program, m.publisher.watchArgs()...)
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, lineLimit)
	for lines.Scan() {
		m.publisher.line(lines.Bytes())
	}
	return errors.Join(lines.Err(), cmd.Wait())
}
