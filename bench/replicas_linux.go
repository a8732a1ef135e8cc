package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/bench/figures"
)

// replicaSessions is how many sessions each side has.
const replicaSessions = 200

// sideKind is what a side has.
type sideKind struct {
	name     string
	gateways int  // one, or so many replicas
	tcp      bool // replicas reach their core by TCP, with a secret
}

func (b *bench) replicasBesideOne() (outcome, error) {
	return b.sides(sideKind{name: "one gateway", gateways: 1}, sideKind{name: "three replicas", gateways: 3})
}

func (b *bench) replicasByTCP() (outcome, error) {
	return b.sides(sideKind{name: "three replicas, one machine", gateways: 3}, sideKind{name: "the same with a core at an address", gateways: 3, tcp: true})
}

// sides measures calls at two sides, which take turns in blocks; the order changes with each round. Figures are of all calls
// of a side but its first block's. Each call is at the next replica, on a connection that is open already.
func (b *bench) sides(kinds ...sideKind) (outcome, error) {
	rounds, calls := 20, 1000
	if b.quick {
		rounds, calls = 3, 400
	}
	t := figures.Table{
		Title: kinds[1].name + ", beside " + kinds[0].name,
		Note:  fmt.Sprintf("%d sessions a side, %d blocks of %d calls a side and load, %d processors.", replicaSessions, rounds, calls, runtime.NumCPU()),
		Rows:  [][]string{{"calls at a time", "", kinds[0].name, kinds[1].name, "ratio"}},
	}
	for _, together := range []int{1, 16} {
		b.say("%s: %d calls at a time", t.Title, together)
		if err := b.compareSides(&t, kinds, rounds, calls, together); err != nil {
			return outcome{}, err
		}
	}
	return outcome{tables: []figures.Table{t}}, nil
}

// compareSides adds the lines of one load.
func (b *bench) compareSides(t *figures.Table, kinds []sideKind, rounds, calls, together int) error {
	var sides []*side
	defer func() {
		for _, s := range sides {
			s.stop()
		}
	}()
	for _, kind := range kinds {
		s := &side{}
		sides = append(sides, s)
		if err := b.startSide(s, kind); err != nil {
			return err
		}
	}
	one, other := sides[0], sides[1]
	for round := range rounds {
		order := slices.Clone(sides)
		if round%2 == 1 {
			slices.Reverse(order)
		}
		for _, s := range order {
			if err := s.block(calls, together, round > 0); err != nil {
				return err
			}
		}
	}
	for _, percent := range []float64{0.50, 0.99} {
		a, b := figures.Percentile(one.took, percent), figures.Percentile(other.took, percent)
		t.Add(together, fmt.Sprintf("p%.0f", 100*percent), fmt.Sprintf("%.2f ms", a), fmt.Sprintf("%.2f ms", b), fmt.Sprintf("%.1f", b/a))
	}
	return nil
}

// side is one gateway, or some replicas.
type side struct {
	urls     []string
	started  []*process
	sessions []*netClient
	turn     int

	mu   sync.Mutex
	took []float64 // ms
}

// startSide starts a side in a state directory of its own, and opens its sessions.
func (b *bench) startSide(s *side, kind sideKind) error {
	dir, err := b.home()
	if err != nil {
		return err
	}
	config, secret := filepath.Join(dir, "outlive.yaml"), filepath.Join(dir, "secret")
	text := fmt.Sprintf("names: never\nlimits: {sessions: 1000}\nservers: {e: {command: %q, shared: true}}\n", b.echo)
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.WriteFile(secret, []byte(rand.Text()+rand.Text()), 0o600)); err != nil {
		return err
	}
	run := func(args ...string) (*process, error) {
		p, err := b.launch(command{name: kind.name, argv: append([]string{b.outlive, "gateway", "-c", config}, args...), env: environment(dir)})
		if err == nil {
			s.started = append(s.started, p)
		}
		return p, err
	}
	replica := []string{"--replica", "--core-idle", "1s"}
	if kind.tcp {
		core, err := freeAddress()
		if err == nil {
			_, err = run("--core", "--core-listen", core, "--core-secret-file", secret)
		}
		if err != nil {
			return err
		}
		replica = []string{"--replica", "--core-at", core, "--core-secret-file", secret}
	}
	if kind.gateways == 1 {
		replica = nil
	}
	for range kind.gateways {
		address, err := freeAddress()
		if err != nil {
			return err
		}
		p, err := run(append([]string{"--listen", address}, replica...)...)
		if err == nil {
			err = p.listens(address)
		}
		if err != nil {
			return err
		}
		s.urls = append(s.urls, "http://"+address+"/mcp")
	}
	return s.open()
}

// open opens the sessions.
func (s *side) open() error {
	transport := newTransport()
	for n := range replicaSessions {
		c := newNetClient(s.urls[n%len(s.urls)], transport)
		if err := c.open(); err != nil {
			return fmt.Errorf("session %d: %w", n+1, err)
		}
		s.sessions = append(s.sessions, c)
	}
	return nil
}

// block makes calls, so many at a time, each in the next session and at the next address. counts: the figures count.
func (s *side) block(calls, together int, counts bool) error {
	work, errs := make(chan int), make([]error, together)
	var done sync.WaitGroup
	for i := range together {
		done.Go(func() {
			for n := range work {
				errs[i] = errors.Join(errs[i], s.call(n, counts))
			}
		})
	}
	for range calls {
		s.turn++
		work <- s.turn
	}
	close(work)
	done.Wait()
	return errors.Join(errs...)
}

func (s *side) call(n int, counts bool) error {
	begun := time.Now()
	err := s.sessions[n%replicaSessions].echoAt(s.urls[n%len(s.urls)], "echo", fmt.Sprintf("call %d", n))
	took := milliseconds(time.Since(begun))
	if err != nil || !counts {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, took)
	return nil
}

// stop ends the gateways, and the core that was started; one of replicas ends by itself.
func (s *side) stop() {
	for _, p := range s.started {
		p.end(5 * time.Second)
	}
}
