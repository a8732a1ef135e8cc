package natsengine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/await"
)

// What several hubs know of how a machine's connection has ended: the last one counts, and nothing while a hub that may have had it is not known.
func TestLast(t *testing.T) {
	never := ended{Runs: time.Hour}
	for _, c := range []struct {
		all  []ended
		want HowEnded
	}{
		{[]ended{never, never, never}, NotKnown},
		{[]ended{{How: Closed, Ago: time.Minute, Runs: time.Hour}, never, never}, Closed},
		{[]ended{{How: Closed, Ago: time.Minute, Runs: time.Hour}, {How: FellMute, Ago: time.Second, Runs: time.Hour}, never}, FellMute},
		{[]ended{{How: Closed, Ago: time.Minute, Runs: time.Hour}, {How: Lives, Runs: time.Hour}, never}, Lives},
		{[]ended{{How: Closed, Ago: time.Minute, Runs: time.Hour}, {Runs: time.Second}, never}, NotKnown}, // it may have been at the one that was restarted
		{[]ended{{How: Closed, Ago: time.Minute, Runs: time.Hour}, {}, never}, NotKnown},                  // one does not answer
		{[]ended{{How: Closed, Ago: time.Second, Runs: time.Hour}, {Runs: time.Minute}, never}, Closed},
	} {
		if got := last(c.all); got != c.want {
			t.Errorf("of %+v: %q, want %q", c.all, got, c.want)
		}
	}
}

// A hub that others reach and this one does not: the later one of the list leaves its machines to the others, and not before both have had
// the time to notice that the third is lost.
func TestBeyond(t *testing.T) {
	names := []string{"a", "b", "c"}
	now := time.Now()
	at := func(seconds float64) time.Time { return now.Add(time.Duration(seconds * float64(time.Second))) }
	third := func(connected ...bool) *peers {
		p := &peers{}
		for n, name := range names {
			p.list = append(p.list, Peer{Name: name, Connected: connected[n]})
		}
		return p
	}
	if away, there := third(false, true, true).earlier(2); !away["a"] || len(away) != 1 || !slices.Equal(there, []int{1}) {
		t.Errorf("c does not reach a, and asks %v for %v", there, away)
	}
	if away, _ := third(true, true, false).earlier(0); len(away) != 0 {
		t.Errorf("a does not reach c, which is later, and asks for %v", away)
	}
	p := third(false, true, true)
	for _, step := range []struct {
		at       float64
		majority bool
		beyond   string
		want     standing
	}{
		{0, true, "", serving},
		{1, true, "a", serving},
		{5.9, true, "a", serving},
		{6.1, true, "a", aside},
		{6.5, true, "nobody answers", aside},
		{7, true, "", serving}, // it is reached again, or lost for the others, too
		{8, true, "a", serving},
		{12, true, "b", serving}, // another one: its time begins anew
		{16, true, "b", serving},
		{17.1, true, "b", aside},
		{18, false, "b", aside},
		{19.1, false, "b", alone},
		{20, true, "", serving},
	} {
		if step.beyond == "nobody answers" {
			p.block("", false, at(step.at))
		} else {
			p.block(step.beyond, true, at(step.at))
		}
		if p.stand(step.majority, at(step.at)); p.standing != step.want {
			t.Errorf("after %v s it stands %d, want %d", step.at, p.standing, step.want)
		}
	}
}

// Since when a hub is there is said by the clock of who asks; an older hub says it by its own.
func TestPeersOf(t *testing.T) {
	now := time.Now()
	list, err := PeersOf([]byte(`[{"name":"b","connected":true,"since":"2001-01-01T00:00:00Z","ago":60000000000},{"name":"a","connected":false,"since":"2001-01-01T00:00:00Z"}]`), now)
	if err != nil || len(list) != 2 || list[0].Since.Year() != 2001 || now.Add(-time.Minute).Sub(list[1].Since).Abs() > time.Second {
		t.Errorf("%+v, %v", list, err)
	}
}

// threeHubs are hubs that are one.
type threeHubs struct {
	t       *testing.T
	pair    tls.Certificate
	names   []string
	listens []string
	dirs    []string
	hubs    [3]*Hub
	own     [3]*Engine
}

func newThreeHubs(t *testing.T) *threeHubs {
	c := &threeHubs{t: t, pair: certificate(t)}
	for n := range 6 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if n < 3 {
			c.names, c.dirs = append(c.names, l.Addr().String()), append(c.dirs, t.TempDir())
		} else {
			c.listens = append(c.listens, l.Addr().String())
		}
	}
	return c
}

func (c *threeHubs) open(n int) {
	c.t.Helper()
	c.openWith(n, c.pair, nil)
}

func (c *threeHubs) openWith(n int, pair tls.Certificate, stranger func(error)) {
	c.t.Helper()
	var err error
	c.hubs[n], c.own[n], err = StartHub(HubOptions{
		Dir: c.dirs[n], Listen: c.listens[n], Certificate: pair, Admit: func(_, _, _, _ string) error { return nil },
		Cluster: &Cluster{Hubs: c.names, Self: n, Changed: func(Peer) {}, Serves: func(bool, string) {}, Stranger: stranger},
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *threeHubs) close(n int) {
	if c.hubs[n] != nil {
		c.own[n].Close()
		c.hubs[n].Close()
		c.hubs[n] = nil
	}
}

// tries until something succeeds.
func tries(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	await.Value(t, what, func() (error, bool) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := try(ctx)
		return err, err == nil
	})
}

// Of three hubs any one can be lost: a machine goes to another one, writes there, and what it watches goes on. One that is left alone lets nobody in.
func TestThreeHubs(t *testing.T) {
	c := newThreeHubs(t)
	for n := range c.hubs {
		c.open(n)
		defer c.close(n)
	}
	tries(t, "make the tables", func(ctx context.Context) error { return c.own[0].MakeTables(ctx) })
	o := options(c.hubs[0], c.pair, "a", "secret")
	o.URL = URLs(strings.Join(c.listens, ","))
	a, err := Connect(o, false)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	changes, err := a.Watch(t.Context(), "digest")
	if err != nil {
		t.Fatal(err)
	}
	written := 0
	writes := func(what string) {
		t.Helper()
		written++
		want := fmt.Sprint(written)
		tries(t, what, func(ctx context.Context) error { _, err := a.Put(ctx, "digest.a", []byte(want)); return err })
		for limit := time.After(2 * time.Minute); ; {
			select {
			case one := <-changes:
				if string(one.Value) == want {
					return
				}
			case <-limit:
				t.Fatalf("%s: what was written is not told", what)
			}
		}
	}
	writes("with all hubs")
	for n := range c.hubs {
		c.close(n)
		writes(fmt.Sprintf("without hub %d", n))
		c.open(n)
		tries(t, "all hubs again", func(context.Context) error {
			list := c.hubs[n].Peers()
			if slices.ContainsFunc(list, func(p Peer) bool { return !p.Connected }) || !slices.ContainsFunc(list, func(p Peer) bool { return p.Leader }) {
				return fmt.Errorf("the hubs are %+v", list)
			}
			return nil
		})
	}
	writes("with all hubs again")
	c.close(0)
	c.close(1)
	tries(t, "the last hub sends its machines away", func(context.Context) error {
		if a.Connected() || c.hubs[2].Serves() { // it may be on its way from another hub, too
			return errors.New("it has not")
		}
		return nil
	})
	if one, err := Connect(o, false); err == nil {
		one.Close()
		t.Error("a hub alone lets machines in")
	} else if errors.Is(err, ErrRefused) {
		t.Errorf("a hub alone refuses the token: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := a.Request(ctx, "run.b", nil); !errors.Is(err, engine.ErrUnknown) {
		t.Errorf("without hubs: %v", err)
	}
	c.open(0)
	writes("with two hubs again")
}

// Hubs with different certificates do not become one, and each says why.
func TestStrangeHub(t *testing.T) {
	c := newThreeHubs(t)
	strangers := make(chan error, 100)
	note := func(err error) {
		select {
		case strangers <- err:
		default:
		}
	}
	c.openWith(0, c.pair, note)
	defer c.close(0)
	c.openWith(1, certificate(t), note)
	defer c.close(1)
	for range 2 {
		select {
		case err := <-strangers:
			if !errors.Is(err, errOtherHub) {
				t.Error(err)
			}
		case <-time.After(2 * time.Minute):
			t.Fatal("nobody says that the certificates differ")
		}
	}
	for n := range 2 {
		if list := c.hubs[n].Peers(); list[1-n].Connected {
			t.Errorf("hub %d takes the other one for one of its own: %+v", n, list)
		}
		if c.hubs[n].Serves() {
			t.Errorf("hub %d lets machines in", n)
		}
	}
}
