package control

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/audit"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

const (
	feedEvents   = 512             // most events that are kept for those who come late
	feedBytes    = 256 << 10       // most bytes of them
	feedBehind   = 128             // how many events may wait for one follower; it is dropped then
	feedPatience = 5 * time.Second // how long one write to a follower may take
	feedAlive    = 15 * time.Second
)

// Feed keeps the last events of a running outlive, and hands them on to those who follow. It is an [event.Sink]. It starts no
// goroutine, and a follower that does not read is dropped: it comes again and resumes.
type Feed struct {
	run string // tells one feed's numbers from another's

	mu        sync.Mutex
	kept      []item // oldest first
	bytes     int
	next      uint64
	farewell  uint64 // the number of the event that says that outlive ends; 0: it does not
	followers map[*follower]bool
}

// item is one event as a line of the audit log, without its newline.
type item struct {
	number uint64
	line   []byte
}

// follower is one reader of a feed. news is closed when it was too slow.
type follower struct{ news chan item }

// NewFeed returns an empty feed.
func NewFeed() *Feed {
	return &Feed{run: strconv.FormatInt(time.Now().UnixMicro(), 36), next: 1, followers: map[*follower]bool{}}
}

// Emit implements [event.Sink]. It never blocks.
func (f *Feed) Emit(e event.Event) {
	line := audit.AppendLine(nil, e, os.Getpid())
	f.mu.Lock()
	defer f.mu.Unlock()
	one := item{f.next, line[:len(line)-1]}
	if e.Type == event.ProxyStopped || e.Type == event.FatalError {
		f.farewell = f.next
	}
	f.next++
	f.kept = append(f.kept, one)
	f.bytes += len(one.line)
	for len(f.kept) > feedEvents || f.bytes > feedBytes && len(f.kept) > 1 {
		f.bytes -= len(f.kept[0].line)
		f.kept[0].line = nil
		f.kept = f.kept[1:]
	}
	for l := range f.followers {
		select {
		case l.news <- one:
		default:
			delete(f.followers, l)
			close(l.news)
		}
	}
}

// follow returns what came after the event with an id, as far as it is kept, how many events are not, and what comes from
// now on. The id "" stands for the last event, or the one before a farewell: who comes so late would take it for killed. All others that
// are not of this feed stand for the time before the first one.
func (f *Feed) follow(after string) (missed []item, lost uint64, l *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l = &follower{make(chan item, feedBehind)}
	f.followers[l] = true
	seen := f.next - 1
	if f.farewell > 0 {
		seen = f.farewell - 1
	}
	if after != "" {
		run, number, _ := strings.Cut(after, "-")
		n, err := strconv.ParseUint(number, 10, 64)
		if seen = 0; run == f.run && err == nil {
			seen = min(n, f.next-1)
		}
	}
	for _, one := range f.kept {
		if one.number > seen {
			missed = append(missed, one)
		}
	}
	return missed, f.next - 1 - seen - uint64(len(missed)), l
}

func (f *Feed) leave(l *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.followers, l)
}

// serve answers with the events as they happen, server-sent: each with an id to resume at and a line of the audit log as its
// data. An event "gap" says how many were not kept. Last-Event-ID says where to begin: "0" is as early as possible.
func (f *Feed) serve(w http.ResponseWriter, r *http.Request) {
	missed, lost, l := f.follow(r.Header.Get("Last-Event-ID"))
	defer f.leave(l)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	write := func(format string, args ...any) bool {
		_ = out.SetWriteDeadline(time.Now().Add(feedPatience))
		_, err := fmt.Fprintf(w, format, args...)
		return err == nil
	}
	tell := func(one item) bool { return write("id: %s-%d\ndata: %s\n\n", f.run, one.number, one.line) }
	ok := write(": events of outlive\n\n")
	if lost > 0 {
		ok = ok && write("event: gap\ndata: {\"lost\":%d}\n\n", lost)
	}
	for _, one := range missed {
		ok = ok && tell(one)
	}
	alive := time.NewTicker(feedAlive)
	defer alive.Stop()
	for ok && out.Flush() == nil {
		select {
		case one, more := <-l.news:
			if ok = more && tell(one); !ok {
				return
			}
		case <-alive.C:
			ok = write(":\n\n")
		case <-r.Context().Done(): // we end, or the follower has gone; the last events say why we end
			for ok && len(l.news) > 0 {
				one, more := <-l.news
				ok = more && tell(one)
			}
			return
		}
	}
}

// lineLimit is the longest line of a stream, in bytes: a line of the audit log and what stands before it.
const lineLimit = 128 << 10

// News is one event of a running outlive.
type News struct {
	ID   string // where to resume
	Line []byte // as the audit log has it; valid until the next one. nil: here are events that were not kept
}

// Follow hands on the events of the instance as they happen, until ctx ends, the instance does, or it drops us because we are
// slow. after is the id of the last event that is known; "": what happens from now on; "0": also what is kept of the past.
// begun is called when nothing that happens from then on is missed. The error wraps [ErrGone] if nobody listens there any more.
func (i Instance) Follow(ctx context.Context, after string, begun func(), each func(News)) error {
	body, err := i.do(ctx, http.MethodGet, "/v1/events", after, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	begun()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, lineLimit)
	var n News
	var gap bool
	for lines.Scan() {
		name, value, _ := bytes.Cut(lines.Bytes(), []byte(": "))
		switch string(name) {
		case "id":
			n.ID = string(value)
		case "event":
			gap = string(value) == "gap"
		case "data":
			if n.Line = value; gap {
				n.Line = nil
			}
			each(n)
			gap = false
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return lines.Err()
}
