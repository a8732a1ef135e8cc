package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/enginemem"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
)

// running puts a command among a member's that has no process, and is ended by what its context says.
func running(m *member, id string) (one *job, ended context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	one = &job{cancel: cancel, begun: true, asked: time.Now(), changed: make(chan struct{})}
	m.jobs.mu.Lock()
	defer m.jobs.mu.Unlock()
	m.jobs.all[id] = one
	return one, ctx
}

// sweeping runs what ends commands that nobody asks for, for as long as the test does.
func sweeping(t *testing.T, test func(t *testing.T, m *member)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m, _ := memberIn(enginemem.New(), "a", "")
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); m.jobs.sweep(ctx) }()
		test(t, m)
		cancel()
		<-over
	})
}

// A command begins when its asker first wants to hear of it, and once. One whose asker has given up does not, whatever arrives later.
func TestJobBegins(t *testing.T) {
	program := filepath.Join(t.TempDir(), "outlive")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		after time.Duration
		asked int // for its first part
		begun bool
	}{
		"at once": {asked: 2, begun: true}, "in time": {after: abandoned, asked: 1, begun: true}, "too late": {after: abandoned + time.Second, asked: 1}, "never": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, _ := memberIn(enginemem.New(), "a", "")
				m.program = program
				for range 2 {
					if p := m.jobs.do(t.Context(), "third", order{Op: "run", ID: "x", Args: []string{"restart", "one"}}); p.Failed != "" {
						t.Fatal(p)
					}
				}
				time.Sleep(c.after)
				for range c.asked {
					if p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: 1}); (p.Failed == "") != c.begun {
						t.Errorf("it is begun: %t, and its asker is told %+v", c.begun, p)
					}
				}
				if begun := m.jobs.all["x"].begun; begun != c.begun {
					t.Errorf("begun %t, want %t", begun, c.begun)
				}
				m.jobs.do(t.Context(), "third", order{Op: "end", ID: "x"})
			})
		})
	}
}

// A command that does not get to start, as where the disk hangs, holds no other one up.
func TestJobThatDoesNotStart(t *testing.T) {
	m, _ := memberIn(enginemem.New(), "a", "")
	m.program = filepath.Join(t.TempDir(), "outlive")
	_, other := running(m, "other")
	m.jobs.do(t.Context(), "third", order{Op: "run", ID: "slow", Args: []string{"status"}})
	slow := m.jobs.all["slow"]
	syscall.ForkLock.RLock() // nothing starts
	var asking sync.WaitGroup
	defer asking.Wait()
	defer syscall.ForkLock.RUnlock()
	asking.Go(func() { m.jobs.do(t.Context(), "third", order{Op: "next", ID: "slow", Part: 1}) })
	await.Until(t, "it begins", func() bool {
		slow.mu.Lock()
		defer slow.mu.Unlock()
		return len(slow.out) > 0
	})
	asking.Go(func() { m.jobs.do(t.Context(), "third", order{Op: "end", ID: "other"}) })
	select {
	case <-other.Done():
	case <-time.After(await.Limit):
		t.Error("another command cannot be ended")
	}
}

// What was asked of a machine that is stopped is not done when it goes on.
func TestOrderToAStoppedMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := enginemem.New()
		a, _ := memberIn(fleet, "a", "")
		b, _ := memberIn(fleet, "b", "")
		goesOn := make(chan struct{})
		stop, err := fleet.Serve(judge.Address("b"), func(ctx context.Context, asker string, question []byte) []byte {
			<-goesOn
			return b.jobs.answer(ctx, asker, question)
		})
		if err != nil {
			t.Fatal(err)
		}
		var ended *fleetsocket.Ending
		a.ask(t.Context(), fleetsocket.Command{Host: "b", Args: []string{"restart", "one"}}, func(f fleetsocket.Frame) error { ended = f.Ended; return nil })
		if ended == nil || !strings.HasSuffix(ended.Why, "what was asked for is not done") {
			t.Errorf("the user is told %+v", ended)
		}
		close(goesOn)
		time.Sleep(abandoned)
		b.jobs.mu.Lock()
		for _, one := range b.jobs.all {
			if one.begun {
				t.Error("it is done all the same")
			}
		}
		b.jobs.mu.Unlock()
		stop()
	})
}

// Who asks for more of a command that says nothing is answered after a while that there is nothing, and at once when there is.
func TestJobHolds(t *testing.T) {
	sweeping(t, func(t *testing.T, m *member) {
		one, _ := running(m, "x")
		begun := time.Now()
		if p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: 1}); !p.None || time.Since(begun) != holdFor {
			t.Errorf("of a silent command: %+v after %s, want nothing after %s", p, time.Since(begun), holdFor)
		}
		begun = time.Now()
		time.AfterFunc(holdFor/2, func() { one.add(&one.out, []byte("word")) })
		if p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: 1}); string(p.Out) != "word" || time.Since(begun) != holdFor/2 {
			t.Errorf("of one that says something: %+v after %s", p, time.Since(begun))
		}
		begun = time.Now()
		time.AfterFunc(holdFor/2, func() { one.end(3) })
		if p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: 2}); p.Exit == nil || *p.Exit != 3 || time.Since(begun) != holdFor/2 {
			t.Errorf("of one that ends: %+v after %s", p, time.Since(begun))
		}
		if holdFor >= partLimit {
			t.Errorf("an answer waits for %s, and who asks for %s", holdFor, partLimit)
		}
	})
}

// A command that nobody asks for any more is ended; one that somebody asks for goes on, however long it is silent.
func TestJobIsAbandoned(t *testing.T) {
	sweeping(t, func(t *testing.T, m *member) {
		_, left := running(m, "left")
		_, asked := running(m, "asked")
		for end := time.Now().Add(4 * abandoned); time.Now().Before(end); {
			if p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "asked", Part: 1}); !p.None {
				t.Fatalf("%+v", p)
			}
			if since := 4*abandoned - time.Until(end); since <= abandoned && left.Err() != nil {
				t.Fatalf("it is ended after %s", since)
			} else if since > 2*abandoned && left.Err() == nil {
				t.Fatalf("nobody has asked for it for %s, and it runs", since)
			}
		}
		if asked.Err() != nil {
			t.Error("what is asked for is ended")
		}
		if p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "left", Part: 1}); p.Failed == "" {
			t.Errorf("who comes too late is told %+v", p)
		}
	})
}

// The end of the member ends all commands, and so does who has asked for one.
func TestJobsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := memberIn(enginemem.New(), "a", "")
		_, dropped := running(m, "dropped")
		_, other := running(m, "other")
		m.jobs.do(t.Context(), "third", order{Op: "end", ID: "dropped"})
		if dropped.Err() == nil || other.Err() != nil {
			t.Errorf("ended: %v, and the other one: %v", dropped.Err(), other.Err())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		m.jobs.sweep(ctx)
		if other.Err() == nil || len(m.jobs.all) != 0 {
			t.Errorf("at the end %d commands are left: %v", len(m.jobs.all), other.Err())
		}
	})
}

// A command that writes more than is taken waits until there is room, or it is ended.
func TestJobWriterWaits(t *testing.T) {
	sweeping(t, func(t *testing.T, m *member) {
		one, ctx := running(m, "x")
		w := jobWriter{ctx, one, &one.out}
		if _, err := w.Write(bytes.Repeat([]byte("x"), pending)); err != nil {
			t.Fatal(err)
		}
		wrote := make(chan error, 1)
		write := func() { _, err := w.Write([]byte("y")); wrote <- err }
		go write()
		synctest.Wait()
		if len(wrote) != 0 {
			t.Fatal("it goes on although nobody takes what it writes")
		}
		if p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: 1}); len(p.Out) != chunk {
			t.Errorf("the first part has %d bytes, want %d", len(p.Out), chunk)
		}
		if err := <-wrote; err != nil {
			t.Error(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), chunk)); err != nil {
			t.Fatal(err)
		}
		go write()
		m.jobs.do(t.Context(), "third", order{Op: "end", ID: "x"})
		if err := <-wrote; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("it was ended, and is told %v", err)
		}
	})
}

// The last that a command has written waits for who asks, also after its end.
func TestJobsLastWordsWait(t *testing.T) {
	const size = pending + 64<<10 // more than is taken, and what is left fits into a pipe
	program := filepath.Join(t.TempDir(), "outlive")
	if err := os.WriteFile(program, fmt.Appendf(nil, "#!/bin/sh\nexec head -c %d /dev/zero\n", size), 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		m, _ := memberIn(enginemem.New(), "a", "")
		m.program = program
		if p := m.jobs.do(t.Context(), "third", order{Op: "run", ID: "x", Args: []string{"logs", "one"}}); p.Failed != "" {
			t.Fatal(p)
		}
		said, number := len(m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: 1}).Out), 2
		time.Sleep(abandoned - time.Second) // who asks is slow: time goes on when the command has ended
		for {
			p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: number})
			said += len(p.Out)
			if p.Failed != "" {
				t.Fatal(p.Failed)
			}
			if p.Exit != nil {
				if want := len("outlive \n") + size; said != want || *p.Exit != 0 {
					t.Errorf("it has said %d bytes, want %d, and has ended with %d", said, want, *p.Exit)
				}
				break
			}
			if !p.None {
				number++
			}
		}
	})
}

// A command that runs for another machine knows which one it is.
func TestJobKnowsWhoAsks(t *testing.T) {
	m, _ := memberIn(enginemem.New(), "a", "")
	program := filepath.Join(t.TempDir(), "outlive")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho asked by $OUTLIVE_ASKED_BY\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	m.program = program
	if p := m.jobs.do(t.Context(), "third", order{Op: "run", ID: "x", Args: []string{"restart", "one"}}); p.Failed != "" {
		t.Fatal(p)
	}
	var said []byte
	for number := 1; ; {
		p := m.jobs.do(t.Context(), "third", order{Op: "next", ID: "x", Part: number})
		said = append(said, p.Out...)
		if p.Exit != nil {
			break // the last part may have text, too
		}
		if !p.None {
			number++
		}
	}
	if !bytes.Contains(said, []byte("asked by third\n")) {
		t.Errorf("%q", said)
	}
}
