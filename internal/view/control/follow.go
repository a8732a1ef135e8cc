package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// lineLimit is the longest line of a stream, in bytes: a line of the audit log and what stands before it.
const lineLimit = 128 << 10

// News is one event of a running outlive.
type News struct {
	ID   string // where to resume
	Line []byte // as the audit log has it; valid until the next one
	Lost int    // events that were not kept, in place of a line
}

// Follow hands on the events of the instance as they happen, until ctx ends, the instance does, or it drops us because we are
// slow. after is the id of the last event that is known; "": what happens from now on; "0": also what is kept of the past.
// begun is called when nothing that happens from then on is missed; nil: nobody is told. The error wraps [ErrGone] if nobody
// listens there any more.
func (i Instance) Follow(ctx context.Context, after string, begun func(), each func(News)) error {
	resp, done, err := i.do(ctx, http.MethodGet, "/v1/events", after, nil)
	if err != nil {
		return err
	}
	defer done()
	if begun != nil {
		begun()
	}
	lines := bufio.NewScanner(resp.Body)
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
			if n.Line, n.Lost = value, 0; gap {
				var g struct{ Lost int }
				if err := json.Unmarshal(value, &g); err != nil {
					return fmt.Errorf("events of %s (pid %d): %w", i.Name, i.PID, err)
				}
				n.Line, n.Lost = nil, g.Lost
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
