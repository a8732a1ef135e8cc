package backend

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/mcp"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// Limits are what one process may take before another one takes its place. Zero: unlimited.
type Limits struct {
	MaxRSS   int64         // resident bytes of its whole tree; more than a fifth above it is not waited for
	MaxAge   time.Duration // since it became ready
	MaxCalls int           // tool calls it was given
}

const (
	// rssEvery is how often memory is looked at.
	rssEvery = 2 * time.Second
	// rssRow is how many looks in a row must be over the limit: a peak is no leak.
	rssRow = 3
	// rssMuch is how far over the limit, in percent of it, a process is ended at once.
	rssMuch = 120
)

// usage is how much the serving process has taken so far.
type usage struct {
	over    int  // looks in a row that found too much memory
	renewed bool // its replacement was asked for
	rss     int64
}

// watchLimits begins to count for a process that serves from now on.
func (b *Backend) watchLimits() {
	b.used = usage{}
	b.watchIdle()
	if b.opts.Limits.MaxRSS > 0 || b.opts.Limits.MaxAge > 0 {
		b.arm(timerLimits, rssEvery)
	}
}

// checkLimits looks at memory and age.
func (b *Backend) checkLimits() {
	p := b.process
	if !p.up || !p.answered || p.role != serving {
		return // whoever serves next is watched anew
	}
	b.arm(timerLimits, rssEvery)
	if age := b.now.Sub(b.readyAt); b.opts.Limits.MaxAge > 0 && age >= b.opts.Limits.MaxAge {
		b.renew(fmt.Sprintf("it has served for %s (--max-age)", age.Round(time.Second)))
	}
	if b.opts.Limits.MaxRSS > 0 {
		b.checkMemory(p)
	}
}

func (b *Backend) checkMemory(p *process) {
	most := b.opts.Limits.MaxRSS
	v := p.server.Vitals()
	b.used.rss = v.RSS
	if !v.Known || v.RSS <= most {
		b.used.over = 0
		return
	}
	b.used.over++
	text := fmt.Sprintf("it uses %d MiB of memory, the limit is %d MiB (--max-rss)", v.RSS>>20, most>>20)
	switch {
	case v.RSS > most/100*rssMuch && b.used.over > 1:
		b.condemn(supervise.Memory, text)
	case b.used.over >= rssRow:
		b.renew(text)
	}
}

// countCall counts a tool call given to the serving process.
func (b *Backend) countCall(c *call) {
	if c.method != mcp.ToolsCall {
		return
	}
	b.process.calls++
	if most := b.opts.Limits.MaxCalls; most > 0 && b.process.calls >= most {
		b.renew(fmt.Sprintf("it was given %d calls (--max-calls)", b.process.calls))
	}
}

// renew has the serving process replaced, once, without hurry: what it was asked it may finish.
func (b *Backend) renew(why string) {
	if b.used.renewed || !b.process.answered {
		return
	}
	b.used.renewed = true
	b.emit(event.LimitReached, slog.LevelInfo, "Server is replaced: "+why, slog.String(event.KeyReason, why))
	b.Restart(b.now, supervise.SourceLimit, why)
}
