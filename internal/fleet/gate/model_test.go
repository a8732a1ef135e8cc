package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/lease"
	"github.com/outlive-mcp/outlive/internal/fleet/mem"
	"github.com/outlive-mcp/outlive/internal/testing/enginetest"
)

// Three programs want to mend the agent of one machine, whose own monitor does so too. Networks lose and delay, programs are stopped
// and wake up late, the registry loses its leases, the machine's programs are killed. No cause is ever mended twice, no agent that is well
// is touched, what is obeyed never gets older, and when everything works again nothing is left undone.
func TestModel(t *testing.T) {
	var sum tally
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { sum.add(model(t, seed)) })
		})
	}
	t.Logf("%+v", sum)
	if sum.causes < 200 || sum.terms < 60 || sum.stale < 20 || sum.changed < 5 || sum.repeated < 50 {
		t.Errorf("the test shows little: %+v", sum)
	}
}

// tally is how much a run has shown.
type tally struct{ causes, terms, stale, changed, repeated int }

func (s *tally) add(o tally) {
	s.causes, s.terms, s.stale, s.changed, s.repeated = s.causes+o.causes, s.terms+o.terms, s.stale+o.stale, s.changed+o.changed, s.repeated+o.repeated
}

// program judges from far away.
type program struct {
	name    string
	network *enginetest.Faults
	machine *machine
	sum     *tally
	mu      *sync.Mutex // of sum
}

// run judges while it has the lease.
func (p program) run(ctx context.Context) {
	for ctx.Err() == nil {
		held, err := lease.Acquire(ctx, p.network, "judge", p.name, lease.Options{})
		if err != nil {
			return
		}
		for held.Context().Err() == nil {
			if incarnation, sick := p.machine.seen(); sick {
				p.mend(held, incarnation)
			}
			select {
			case <-held.Context().Done():
			case <-time.After(5 * time.Second):
			}
		}
	}
}

// Request counts what comes back.
func (p program) Request(ctx context.Context, address string, request []byte) ([]byte, error) {
	answer, err := p.network.Request(ctx, address, request)
	p.mu.Lock()
	defer p.mu.Unlock()
	var reply Reply
	switch {
	case err != nil:
		p.sum.repeated++
	case json.Unmarshal(answer, &reply) != nil:
	case reply.Outcome == Stale:
		p.sum.stale++
	case reply.Outcome == Changed:
		p.sum.changed++
	}
	return answer, err
}

func (p program) mend(held *lease.Held, incarnation string) {
	ctx, cancel := context.WithTimeout(held.Context(), time.Minute)
	defer cancel()
	_, _ = Send(ctx, p, "host", Command{ID: NewID(), By: p.name, Agent: "a", Incarnation: incarnation, Verb: "restart"}, held)
}

func model(t *testing.T, seed uint64) (sum tally) {
	chance := rand.New(rand.NewPCG(seed, 3))
	e := mem.New()
	m := newMachine(t)
	m.takes = 3 * time.Second
	host := enginetest.NewFaults(e, seed, 0)
	m.start(host)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var mu sync.Mutex
	var networks []*enginetest.Faults
	for i := range 3 {
		p := program{name: fmt.Sprint("program", i), network: enginetest.NewFaults(e, seed*10+uint64(i), 0.05), machine: m, sum: &sum, mu: &mu}
		networks = append(networks, p.network)
		all.Go(func() { p.run(ctx) })
	}
	for range 600 {
		time.Sleep(time.Second)
		m.note("judge")
		disturb(ctx, t, chance, m, host, networks)
		if chance.Float64() < 0.01 { // the registry loses its leases
			_ = e.Delete(ctx, lease.Key("judge"))
		}
	}
	host.Calm()
	for _, n := range networks {
		n.Calm()
	}
	m.sicken()
	for range 150 {
		time.Sleep(time.Second)
		m.note("judge")
	}
	if _, sick := m.seen(); sick {
		t.Error("the agent is still in trouble when everything works again")
	}
	cancel()
	for _, n := range append(networks, host) {
		n.Close()
	}
	all.Wait()
	m.stop()
	for cause, times := range m.mended {
		if times > 1 {
			t.Errorf("cause %d was mended %d times", cause, times)
		}
	}
	if len(m.mended) != m.causes {
		t.Errorf("%d causes, %d were mended", m.causes, len(m.mended))
	}
	if m.harmed > 0 {
		t.Errorf("%d times an agent that was well was touched", m.harmed)
	}
	sum.causes, sum.terms = m.causes, len(m.obeyed)
	return sum
}

// disturb lets something happen, now and then.
func disturb(ctx context.Context, t *testing.T, chance *rand.Rand, m *machine, host *enginetest.Faults, networks []*enginetest.Faults) {
	often := func(rate float64) bool { return chance.Float64() < rate }
	victim := networks[chance.IntN(len(networks))]
	for _, bad := range []struct {
		member *enginetest.Faults
		what   func()
		rate   float64
	}{{victim, victim.Cut, 0.01}, {victim, victim.Stop, 0.05}, {host, host.Cut, 0.005}} {
		if often(bad.rate) {
			bad.what()
			time.AfterFunc(time.Duration(chance.IntN(70))*time.Second, bad.member.Heal)
		}
	}
	if often(0.05) {
		m.sicken()
	}
	if often(0.01) {
		m.start(host) // a kill
	}
	if often(0.01) { // its own monitor mends it
		if incarnation, sick := m.seen(); sick {
			go func() {
				_, _ = life{m, m.life}.Carry(ctx, Command{Incarnation: incarnation})
			}()
		}
	}
}
