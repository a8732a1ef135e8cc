package cli

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
	"github.com/outlive-mcp/outlive/internal/keep/restart"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// sinceTime is the time that --since names: how long ago, or a date or time.
func sinceTime(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	t, err := restart.ParseTime(text)
	if err != nil {
		return t, fail(exitUsage, "--since %q: want how long ago, such as 90m or 24h, or a time, such as 2026-05-04T12:00:00Z", text)
	}
	return t, nil
}

// rotatedName is the end of a rotated audit log's name.
var rotatedName = lazyregexp.New(`-\d{4}-\d\d-\d\dT[-.\d]+.*$`)

// past writes the events of the audit logs from a time on.
func (w *watching) writePast(since time.Time) {
	written := map[overview.EventKey]bool{}
	for _, l := range collect.Since(auditLogs(), since) {
		e := l.Event
		name := rotatedName.ReplaceAllString(strings.TrimSuffix(filepath.Base(l.Path), ".jsonl"), "")
		e.Instance = cmp.Or(e.Instance, fmt.Sprintf("%s@%d", name, e.PID))
		written[e.Key()] = true
		w.event(e, l.Line)
	}
	w.past = written // from here on they are not written again
}
