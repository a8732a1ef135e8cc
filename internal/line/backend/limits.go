package backend

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/record/event"
)

// limits is the resource use of the serving process, and its idle time.
type limits struct {
	*core

	used    usage
	lastUse time.Time // the client wanted something of the server, or got an answer
}

// Limits are what one process may use before it is replaced. Zero: unlimited.
type Limits struct {
	MaxRSS   int64         // resident bytes of its whole tree; a process more than a fifth above it is replaced at once
	MaxAge   time.Duration // since it became ready
	MaxCalls int           // tool calls it was given
}

const (
	// rssEvery is how often memory is looked at.
	rssEvery = 2 * time.Second
	// rssRow is how many consecutive readings must be over the limit, so that a peak does not count as a leak.
	rssRow = 3
	// rssMuch is the percentage of the limit above which a process is replaced at once.
	rssMuch = 120
)

// usage is how much the serving process has taken so far.
type usage struct {
	over    int       // looks in a row that found too much memory
	renewed bool      // its replacement was asked for
	failed  int       // replacements in a row that came to nothing
	again   time.Time // when the next is asked for at the earliest, after one of them
}

// watchLimits begins to count for a process that serves from now on.
func (u *limits) watchLimits() {
	u.used = usage{}
	u.watchIdle()
	if u.opts.Limits.MaxRSS > 0 || u.opts.Limits.MaxAge > 0 {
		u.arm(timerLimits, rssEvery)
	}
}

// checkLimits looks at memory and age.
func (u *limits) checkLimits() {
	p := u.process
	if !p.answered() || p.role != serving {
		return // the next process is watched from its start
	}
	u.arm(timerLimits, rssEvery)
	if age := u.now.Sub(u.history.readyAt); u.opts.Limits.MaxAge > 0 && age >= u.opts.Limits.MaxAge {
		u.renew(fmt.Sprintf("it has served for %s (--max-age)", age.Round(time.Second)))
	}
	if u.opts.Limits.MaxRSS > 0 {
		u.checkMemory(p)
	}
}

func (u *limits) checkMemory(p *process) {
	most := u.opts.Limits.MaxRSS
	v := p.server.Vitals()
	if !v.Known || v.RSS <= most {
		u.used.over = 0
		return
	}
	u.used.over++
	text := fmt.Sprintf("it uses %d MiB of memory, the limit is %d MiB (--max-rss)", v.RSS>>20, most>>20)
	switch {
	case v.RSS > most/100*rssMuch && u.used.over > 1:
		u.health.replaceUnhealthy(supervise.Memory, text)
	case u.used.over >= rssRow:
		u.renew(text)
	}
}

// countCall counts a tool call given to the serving process.
func (u *limits) countCall(c *call) {
	if c.method != mcp.ToolsCall {
		return
	}
	u.process.calls++
	if most := u.opts.Limits.MaxCalls; most > 0 && u.process.calls >= most {
		u.renew(fmt.Sprintf("it was given %d calls (--max-calls)", u.process.calls))
	}
}

// After a replacement that came to nothing the next one is asked for renewAgain later, doubled each time up to renewAgainMost.
const (
	renewAgain     = time.Minute
	renewAgainMost = time.Hour
)

// notRenewed notes that a planned restart came to nothing: the process is still the one that has taken too much.
func (u *limits) notRenewed() {
	if !u.used.renewed {
		return
	}
	u.used.renewed = false
	u.used.again = u.now.Add(min(renewAgain<<min(u.used.failed, 8), renewAgainMost))
	u.used.failed++
}

// renew has the serving process replaced, once; calls in flight may finish.
func (u *limits) renew(why string) {
	if u.used.renewed || u.now.Before(u.used.again) || !u.process.answered() {
		return
	}
	u.used.renewed = true
	u.emit(event.LimitReached, slog.LevelInfo, "Server is replaced: "+why, slog.String(event.KeyReason, why))
	u.life.restart(supervise.SourceLimit, why)
}
