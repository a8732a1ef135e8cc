package gateway

import (
	"fmt"
	"testing"

	"github.com/outlive-mcp/outlive/internal/host"
)

// What each turn of the loop costs a gateway that keeps 200 processes, when something has just reached one of them.
func BenchmarkDeadline(b *testing.B) {
	r, err := NewRunner(RunnerOptions{Host: func(*Link) host.Options { return host.Options{Stderr: mute{}} }})
	if err != nil {
		b.Fatal(err)
	}
	var one *kept
	for i := range 200 {
		l := &Link{gw: r.gw, server: &server{Server: named(fmt.Sprint(i))}, scope: r.gw.modern}
		one = &kept{runner: r, link: l, opened: true}
		one.host = host.New(r.loop, one, r.opts.Host(l))
		r.kept[l] = one
	}
	b.Run("first of all", func(b *testing.B) {
		for b.Loop() {
			r.due.asked = r.loop.Now().Add(-askAllEvery)
			r.deadline()
		}
	})
	b.Run("then", func(b *testing.B) {
		r.due.asked = r.loop.Now()
		for b.Loop() {
			r.due.touch(one)
			r.deadline()
		}
	})
}
