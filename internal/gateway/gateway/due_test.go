package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/host"
)

// The loop ticks no later than the first backend wants, and looks at all of them once when a wish has been taken back.
func TestDue(t *testing.T) {
	at := func(s int) time.Time {
		if s == 0 {
			return time.Time{}
		}
		return time.Unix(int64(s), 0)
	}
	for _, one := range []struct{ wishes, want []int }{
		{[]int{0}, []int{0}},
		{[]int{5, 0}, []int{5, 5}},
		{[]int{5, 7, 3}, []int{5, 5, 3}},
		{[]int{0, 9, 9}, []int{0, 9, 9}},
	} {
		var r Runner
		for i, wish := range one.wishes {
			if r.hear(at(wish)); !r.due.Equal(at(one.want[i])) {
				t.Errorf("wishes %v: after %d at %v, want %d", one.wishes, i, r.due, one.want[i])
			}
		}
	}
}

// What each turn of the loop costs a gateway that keeps 200 processes, and what a tick of it does.
func BenchmarkDeadline(b *testing.B) {
	r, err := NewRunner(RunnerOptions{Host: func(*Link) host.Options { return host.Options{Stderr: mute{}} }})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 200 {
		l := &Link{gw: r.gw, server: &server{Server: named(fmt.Sprint(i))}, scope: r.gw.modern}
		one := &kept{runner: r, link: l, opened: true}
		one.host = host.New(r.loop, one, r.opts.Host(l))
		r.kept[l] = one
	}
	b.Run("turn", func(b *testing.B) {
		for b.Loop() {
			r.deadline()
		}
	})
	b.Run("tick", func(b *testing.B) {
		for b.Loop() {
			r.tick(r.loop.Now())
		}
	})
}

// Memory is given back once for each time that clients have become silent, and at most once in ten seconds.
func TestMemoryIsGivenBackWhenClientsAreSilent(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	given := 0
	q := quiet{give: func() { given++ }}
	for _, step := range []struct {
		at     time.Duration
		spoken bool
		given  int
	}{
		{at: time.Hour}, // nobody has said anything
		{at: time.Hour, spoken: true},
		{at: time.Hour + 2*time.Second, spoken: true},
		{at: time.Hour + 3*time.Second}, // too soon after the second message
		{at: time.Hour + 5*time.Second, given: 1},
		{at: 2 * time.Hour, given: 1},
		{at: 2 * time.Hour, spoken: true, given: 1},
		{at: 2*time.Hour + 3*time.Second, given: 2},
		{at: 2*time.Hour + 5*time.Second, spoken: true, given: 2},
		{at: 2*time.Hour + 9*time.Second, given: 2}, // ten seconds have not passed
		{at: 2*time.Hour + 13*time.Second, given: 3},
	} {
		now := begin.Add(step.at)
		if step.spoken {
			q.spoken(now)
		}
		if q.tick(now); given != step.given {
			t.Errorf("at %s: given back %d times, want %d", step.at, given, step.given)
		}
	}
	if !q.at.IsZero() {
		t.Errorf("it looks again at %s although nothing was said", q.at.Sub(begin))
	}
}
