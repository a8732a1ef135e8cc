package control

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/curve"
)

// Curves asks how its servers did minute by minute: what has come after a minute, by the name of the server. An older outlive keeps
// nothing.
func (i Instance) Curves(ctx context.Context, after int64) (parts map[string]curve.Part, err error) {
	err = i.ask(ctx, http.MethodGet, "/v1/curves?after="+strconv.FormatInt(after, 10), nil, &parts)
	if _, older := errors.AsType[*refusal](err); older {
		return nil, nil
	}
	return parts, err
}

// totalsOf are the totals of the servers of a status.
func totalsOf(s Status) map[string]curve.Totals {
	if len(s.Servers) == 0 {
		return map[string]curve.Totals{s.Name: totals(s.Counters, s.Status)}
	}
	all := make(map[string]curve.Totals, len(s.Servers))
	for _, m := range s.Servers {
		links := make([]backend.Status, len(m.Links))
		for n, l := range m.Links {
			links[n] = l.Status
		}
		all[m.Name] = totals(m.Counted(), links...)
	}
	return all
}

// totals are what was counted of a server but for handshakes and lists, which its client asks for by itself, and what its processes use.
func totals(c backend.Counters, processes ...backend.Status) (t curve.Totals) {
	for n := range c.Calls {
		one := &c.Calls[n]
		if !one.MakesUse() {
			continue
		}
		t.Calls += one.Total()
		t.Errors += one.Bad()
		t.Latency.Merge(&one.Latency)
	}
	for _, p := range processes {
		t.Memory += p.RSS
		for _, b := range p.Beside {
			t.Memory += b.RSS
		}
		if p.ServerPID != 0 && p.CPUMS > 0 {
			if t.CPU == nil {
				t.CPU = map[int]time.Duration{}
			}
			t.CPU[p.ServerPID] = time.Duration(p.CPUMS) * time.Millisecond
		}
	}
	return t
}
