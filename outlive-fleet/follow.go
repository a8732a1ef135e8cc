package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// follow hands on the lines of a machine until it is silent, or ctx ends.
func (v *view) follow(ctx context.Context, host, after string, each func(line []byte) error) *fleetsocket.Ending {
	defer v.acquire()()
	v.await(ctx)
	f := following{each: each}
	var known string // the ending that who asks has been told
	f.inc, f.next, known = positionOf(after)
	at := "" // the position that was told
	for {
		g := v.at(host)
		f.start(g)
		another := g.ending != nil && g.ending.Word != known
		err := f.tell(g, another)
		if err == nil && f.position() != at {
			at = f.position()
			err = each(fleetsocket.PositionLine(at))
		}
		if err != nil {
			return nil // who has asked is gone
		}
		if another || g.ending != nil && f.told {
			e := *g.ending
			e.Position = f.position() + ":" + e.Word
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
	inc   string // incarnation whose news are told; noNews: none has told any yet; "": it is not known yet
	next  uint64 // number of the next of them
	beat  digest
	state *overview.Snapshot
	told  bool
}

const noNews = "none"

// start passes over what a machine has told before, as soon as that is known.
func (f *following) start(g glance) {
	if g.ready && f.inc == "" {
		f.inc, f.next = cmp.Or(g.news.Incarnation, noNews), g.news.First+uint64(len(g.news.Lines))
	}
}

// tellNews tells the events that were not told yet.
func (f *following) tellNews(n news) error {
	if f.inc == "" || n.Incarnation == "" {
		return nil
	}
	if missing := f.missing(n); missing > 0 {
		if err := f.each(missingLine(missing)); err != nil {
			return err
		}
	}
	for at, line := range n.Lines {
		if number := n.First + uint64(at); n.Incarnation != f.inc || number >= f.next {
			if err := f.each(line); err != nil {
				return err
			}
		}
	}
	f.inc, f.next = n.Incarnation, n.First+uint64(len(n.Lines))
	return nil
}

// missing is how many events are kept no more that were not told yet, as far as that is known.
func (f *following) missing(n news) uint64 {
	from, lost := f.next, uint64(0)
	if n.Incarnation != f.inc {
		from = 1
		if inc, end, _ := positionOf(n.After); inc == f.inc && end > f.next {
			lost = end - f.next
		}
	}
	if n.First > from {
		lost += n.First - from
	}
	return lost
}

// missingLine is the event of events that are kept no more.
func missingLine(count uint64) []byte {
	line, _ := json.Marshal(overview.Event{ // texts and a time: no error
		At: time.Now(), Level: "WARNING", Type: event.ServerLogLost, Message: fmt.Sprintf("%d events of this machine were not kept for the fleet; its audit logs have them", count),
	})
	return line
}

// position is where it goes on later. Of who knows nothing yet it is none: what is found then is old.
func (f *following) position() string { return positionAt(f.inc, f.next) }

func positionAt(inc string, next uint64) string { return inc + ":" + strconv.FormatUint(next, 10) }

// positionOf reads a position, and the word of the ending with which it was told.
func positionOf(text string) (inc string, next uint64, word string) {
	inc, rest, _ := strings.Cut(text, ":")
	number, word, _ := strings.Cut(rest, ":")
	next, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return "", 0, ""
	}
	return inc, next, word
}

// tell tells what is new. Of a machine that is silent what was known last, if old says so.
func (f *following) tell(g glance, old bool) error {
	if g.ending != nil && (f.told || !old) {
		return nil
	}
	if err := f.tellNews(g.news); err != nil {
		return err
	}
	if g.state == nil || f.state == g.state && f.beat == g.digest {
		return nil
	}
	f.state, f.beat, f.told = g.state, g.digest, true
	s := *g.state
	if g.digest.At.After(s.At) {
		s.At = g.digest.At // the rest has stayed as it was, and its clock is told by this
	}
	if g.ending != nil {
		return f.each(lastLine(s))
	}
	return f.each(stateLine(s))
}
