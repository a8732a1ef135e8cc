package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/seen"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// follow hands on the lines of a machine until it is silent, or ctx ends.
func (v *view) follow(ctx context.Context, host, after string, each func(line []byte) error) *fleetsocket.Ending {
	defer v.acquire()()
	v.await(ctx)
	f := following{each: each}
	var known string // the ending that who asks has been told
	f.read, known = seen.ReaderAt(after)
	at := "" // the position that was told
	for {
		g := v.at(host)
		another := g.ending != nil && g.ending.Word != known
		err := f.tell(g, another)
		if err == nil && f.read.String() != at {
			at = f.read.String()
			err = each(fleetsocket.PositionLine(at))
		}
		if err != nil {
			return nil // who has asked is gone
		}
		if another || g.ending != nil && f.told {
			e := *g.ending
			e.Position = at + ":" + e.Word
			return &e
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.changed:
		}
	}
}

// following is where somebody is in what a machine tells.
type following struct {
	each  func(line []byte) error
	read  seen.Reader
	beat  seen.Order // of the digests
	state *overview.Snapshot
	told  bool
}

// missingLine is the event of events that are kept no more.
func missingLine(count uint64) []byte {
	line, _ := json.Marshal(overview.Event{ // texts and a time: no error
		At: time.Now(), Level: "WARNING", Type: event.ServerLogLost, Message: fmt.Sprintf("%d events of this machine were not kept for the fleet; its audit logs have them", count),
	})
	return line
}

// tell tells what is new. Of a machine that is silent what was known last, if old says so. The events of before are passed over, as soon as they are
// known.
func (f *following) tell(g glance, old bool) error {
	if g.ready {
		f.read.Start(g.news)
	}
	if g.ending != nil && (f.told || !old) {
		return nil
	}
	fresh, missing := f.read.Take(g.news)
	if missing > 0 {
		fresh = append([]json.RawMessage{missingLine(missing)}, fresh...)
	}
	for _, line := range fresh {
		if err := f.each(line); err != nil {
			return err
		}
	}
	if g.state == nil || !f.beat.Newer(g.digest.Incarnation, g.digest.Beat) && f.state == g.state {
		return nil
	}
	f.state, f.told = g.state, true
	s := *g.state
	if g.digest.At.After(s.At) {
		s.At = g.digest.At // the rest has stayed as it was, and its clock is told by this
	}
	line, _ := collect.StateLine(s, g.ending != nil) // it was read from JSON: no error
	return f.each(line)
}
