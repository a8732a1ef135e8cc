package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/judge"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// judging is this machine's part in noticing what concerns several machines: what it leaves to the judge, and that it judges while it has
// the lease.
type judging struct {
	m      *member
	herald *herald

	relies judge.Reliance
	mu     sync.Mutex
	shares []judge.Trouble // of the agents here
	told   time.Time       // when the monitor said so last

	cancel context.CancelFunc
	parts  sync.WaitGroup
}

// begin starts it.
func (j *judging) begin(ctx context.Context) error {
	if err := j.herald.load(); err != nil {
		return err
	}
	ctx, j.cancel = context.WithCancel(ctx)
	o := judge.Options{Reach: j.herald.reach, Ended: j.ended, Logger: j.m.log}
	j.parts.Go(func() { _ = judge.Run(ctx, j.m.engine, j.m.Host, j.herald, o) }) // it ends with ctx
	j.parts.Go(func() { j.herald.run(ctx) })
	return nil
}

// sharesKept is how long what the monitor has said last holds, if it says nothing any more.
const sharesKept = 10 * time.Minute

// share takes from the monitor which troubles machines may share, and returns the causes that it can leave to the fleet.
func (j *judging) share(list []fleetsocket.Trouble) fleetsocket.ShareAnswer {
	left := fleetsocket.ShareAnswer{Causes: []string{}}
	j.mu.Lock()
	j.shares, j.told = nil, time.Now()
	for _, t := range list {
		j.shares = append(j.shares, judge.Trouble(t))
	}
	j.mu.Unlock()
	for _, t := range list {
		if j.relies.Leaves(t.Cause) && !slices.Contains(left.Causes, t.Cause) {
			left.Causes = append(left.Causes, t.Cause)
		}
	}
	return left
}

func (j *judging) troubles() []judge.Trouble {
	j.mu.Lock()
	defer j.mu.Unlock()
	if time.Since(j.told) > sharesKept {
		j.shares = nil
	}
	return slices.Clone(j.shares)
}

// end gives the lease up, and returns when nothing of it runs any more.
func (j *judging) end() {
	j.cancel()
	j.parts.Wait()
}

// ended asks the hub how the connection of a machine has ended that nobody answers for.
func (j *judging) ended(ctx context.Context, host string) judge.Standing {
	if j.m.NATS != "" {
		return judge.Lost // who runs that server knows
	}
	answer, err := j.m.engine.Request(ctx, natsengine.EndedAddress, []byte(host))
	if err != nil {
		return judge.Lost
	}
	return judge.Standing(answer)
}
