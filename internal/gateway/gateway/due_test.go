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
		var d due
		for i, wish := range one.wishes {
			if d.hear(at(wish)); !d.at.Equal(at(one.want[i])) {
				t.Errorf("wishes %v: after %d at %v, want %d", one.wishes, i, d.at, one.want[i])
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
