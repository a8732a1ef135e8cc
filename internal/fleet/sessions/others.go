package sessions

import (
	"context"
	"maps"
	"sync"

	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

// mostMet is how many gateways are remembered whose time is over.
const mostMet = 1000

// others are the gateways whose sessions were asked for here.
type others struct {
	from lease.Registry
	opts Options
	ctx  context.Context
	end  context.CancelFunc

	waits sync.WaitGroup
	mu    sync.Mutex
	met   map[Owner]*period
}

// period is a gateway's time with its lease.
type period struct {
	once sync.Once
	over chan struct{} // closed when it is over
}

func (o *others) begin(from lease.Registry, opts Options) {
	o.from, o.opts, o.met = from, opts, map[Owner]*period{}
	o.ctx, o.end = context.WithCancel(context.Background())
}

// over is closed when the time of a gateway is over, which is found out from the first call on. A time that has ended by now is over when
// it returns, also if it has ended a moment ago: what is passed on for it would be refused there.
func (o *others) over(owner Owner) <-chan struct{} {
	of := o.meet(owner)
	select {
	case <-of.over:
	default:
		if lease.Over(o.ctx, o.from, owner.term(o.opts.Gateway), leaseOptions()) {
			o.ended(owner, of)
		}
	}
	return of.over
}

// meet begins to wait for the end of a gateway's time, unless it was met before.
func (o *others) meet(owner Owner) *period {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of := o.met[owner]; of != nil {
		return of
	}
	if len(o.met) >= mostMet {
		maps.DeleteFunc(o.met, func(_ Owner, of *period) bool {
			select {
			case <-of.over:
				return true
			default:
				return false
			}
		})
	}
	of := &period{over: make(chan struct{})}
	o.met[owner] = of
	if o.ctx.Err() == nil {
		o.waits.Go(func() { o.outlast(owner, of) })
	}
	return of
}

// outlast waits for the end of a gateway's time.
func (o *others) outlast(owner Owner, of *period) {
	if lease.Outlast(o.ctx, o.from, owner.term(o.opts.Gateway), leaseOptions()) == nil { // otherwise the store is closed
		o.ended(owner, of)
	}
}

// ended notes that a gateway's time is over. Only the first call has an effect.
func (o *others) ended(owner Owner, of *period) {
	of.once.Do(func() {
		close(of.over)
		if o.opts.Outlasted != nil && owner.At != "" {
			o.opts.Outlasted(owner.At)
		}
	})
}

func (o *others) close() {
	o.mu.Lock()
	o.end()
	o.mu.Unlock()
	o.waits.Wait()
}
