package notify

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// lastSend is how long a message may still take when the senders are asked to end.
const lastSend = 3 * time.Second

// Run sends the outbox's messages until ctx ends, and returns when the last request is over, within three seconds. Each
// channel has its own goroutine.
func (o *Outbox) Run(ctx context.Context) {
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lastSend, cancel)
		context.AfterFunc(sending, func() { timer.Stop() })
	})
	defer stop()
	o.deliverAll(ctx, sending, func(time.Time) bool { return false })
}

// Drain sends what is due, until nothing is left or ctx ends. It must not be used beside [Outbox.Run].
func (o *Outbox) Drain(ctx context.Context) {
	end, limited := ctx.Deadline()
	o.deliverAll(ctx, ctx, func(next time.Time) bool { return next.IsZero() || limited && next.After(end) })
}

// deliverAll delivers by each channel in a goroutine of its own. That ends with ctx, or when enough says so of the time of the next
// message.
func (o *Outbox) deliverAll(ctx, sending context.Context, enough func(next time.Time) bool) {
	var all sync.WaitGroup
	for _, l := range o.lanes {
		all.Go(func() {
			for ctx.Err() == nil {
				if next := o.deliver(sending, l); enough(next) || !wait(ctx, l.wake, next) {
					return
				}
			}
		})
	}
	all.Wait()
}

// Wake says that something was put.
func (o *Outbox) Wake() {
	for _, l := range o.lanes {
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// deliver is one step of a channel.
func (o *Outbox) deliver(ctx context.Context, l *lane) (next time.Time) {
	next, err := o.Deliver(ctx, l.name, time.Now())
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != l.told && ctx.Err() == nil {
		o.logger.Warn("a message was not sent", slog.String("channel", l.name), slog.Any("error", err), slog.Time("next", next))
	}
	l.told = text
	return next
}

// wait waits until it is time, or something woke; zero: until something does. It is false when ctx has ended.
func wait(ctx context.Context, woke <-chan struct{}, until time.Time) bool {
	var due <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-woke:
	case <-due:
	}
	return true
}
