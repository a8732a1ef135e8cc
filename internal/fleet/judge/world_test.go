package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/testing/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// people hear all messages, as "machine: kind subject standing agents".
type people struct {
	mu     sync.Mutex
	heard  []string
	broken map[string]bool          // machines whose channel does not work
	slow   map[string]time.Duration // how long a channel takes
}

func (p *people) all() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.heard)
}

func (p *people) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, text)
}

// channel is a machine's way to people.
type channel struct {
	*people
	machine string
}

func (c channel) Tell(_ context.Context, about Case, repeated bool) error {
	c.mu.Lock()
	broken, slow := c.broken[c.machine], c.slow[c.machine]
	c.mu.Unlock()
	if broken {
		return fmt.Errorf("no way: %w", ErrNotSent)
	}
	text := strings.TrimSpace(fmt.Sprint(about.Kind, " ", about.Subject, " ", about.Standing, strings.Join(about.Agents, " ")))
	if repeated {
		text += " (repeated)"
	}
	c.say(text)
	time.Sleep(slow)
	return nil
}

// machine is one of a fleet: its judge, its digests, and who answers for it.
type machine struct {
	name    string
	network *enginetest.Faults
	relies  *Reliance
	runs    int
	reach   atomic.Int32 // a Reach
	asked   atomic.Int32 // how often it was asked whether it lives

	mu       sync.Mutex
	troubles []Trouble

	cancel context.CancelFunc
	stop   func() // answering for it
	all    sync.WaitGroup
}

func (m *machine) set(troubles ...Trouble) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.troubles = troubles
}

// leave ends the machine's program as it should.
func (m *machine) leave() {
	m.cancel()
	m.stop()
	m.all.Wait()
}

// die ends it as a loss of power.
func (m *machine) die() {
	m.network.Cut()
	m.stop()
	m.cancel()
	m.all.Wait()
}

type world struct {
	*people
	registry *enginemem.Engine
	machines []*machine
	stop     context.CancelFunc // looking for what is over
}

func newWorld(t *testing.T, machines int, seed uint64, rate float64) *world {
	w := &world{people: &people{broken: map[string]bool{}, slow: map[string]time.Duration{}}, registry: enginemem.New()}
	ctx, stop := context.WithCancel(t.Context())
	w.stop = stop
	changes, err := w.registry.Watch(ctx, Table)
	if err != nil {
		t.Fatal(err)
	}
	go w.ends(changes)
	for i := range machines {
		m := &machine{name: fmt.Sprint("m", i), network: enginetest.NewFaults(w.registry, seed*100+uint64(i), rate)}
		m.reach.Store(int32(People))
		w.machines = append(w.machines, m)
		w.begin(t, m)
		time.Sleep(time.Second) // the first one has the lease
	}
	return w
}

// ends says of each case that people were told of that it is over, as those do who have told of it.
func (w *world) ends(changes <-chan engine.Change) {
	for c := range changes {
		if r, err := ReadRecord(c.Key, c.Value); err == nil && r.State == Over && r.Message != "" {
			w.say(fmt.Sprint("over: ", r.Kind, " ", r.Subject))
		}
	}
}

// begin starts a machine's program.
func (w *world) begin(t *testing.T, m *machine) {
	ctx, cancel := context.WithCancel(t.Context())
	m.cancel = cancel
	var err error
	if m.stop, err = m.network.Serve(Address(m.name), func(context.Context, string, []byte) []byte { m.asked.Add(1); return nil }); err != nil {
		t.Fatal(err)
	}
	opts := Options{Reach: func() Reach { return Reach(m.reach.Load()) }}
	m.relies = &Reliance{}
	m.runs++
	run := fmt.Sprint(m.runs)
	m.all.Go(func() { _ = Run(ctx, m.network, m.name, channel{w.people, m.name}, opts) })
	m.all.Go(func() { m.live(ctx, run) })
}

// live writes a digest each beat until ctx ends, and then that the machine has left.
func (m *machine) live(ctx context.Context, run string) {
	tick := time.NewTicker(Beat)
	defer tick.Stop()
	for n := uint64(1); ; n++ {
		m.mu.Lock()
		troubles := slices.Clone(m.troubles)
		m.mu.Unlock()
		m.write(ctx, Digest{Format: Format, Incarnation: run, Beat: n, Reach: Reach(m.reach.Load()), Troubles: troubles})
		select {
		case <-ctx.Done():
			m.write(context.WithoutCancel(ctx), Digest{Format: Format, Incarnation: run, Beat: n + 1, Left: true})
			return
		case <-tick.C:
		}
	}
}

// write writes one digest. One that is lost is followed by the next.
func (m *machine) write(ctx context.Context, d Digest) {
	ctx, cancel := context.WithTimeout(ctx, Beat)
	defer cancel()
	sent := time.Now()
	if _, err := m.network.Put(ctx, engine.Key(Digests, m.name), jsonOf(d)); err == nil {
		m.relies.Reached(sent, d.Troubles)
	}
}

func (w *world) end() {
	for _, m := range w.machines {
		m.network.Calm()
		m.leave()
		m.network.Close()
	}
	w.stop()
}

// wants compares what people have heard.
func (w *world) wants(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := w.all(); !slices.Equal(got, want) {
		t.Errorf("%s: people have heard %q, want %q", what, got, want)
	}
}

var _ engine.Engine = (*enginetest.Faults)(nil)
