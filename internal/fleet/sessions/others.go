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
	met   map[Owner]period
}

// period is a gateway's time with its lease.
type period struct {
	looked chan struct{} // closed when it was looked at once
	over   chan struct{} // closed when it is over
}

func (o *others) begin(from lease.Registry, opts Options) {
	o.from, o.opts, o.met = from, opts, map[Owner]period{}
	o.ctx, o.end = context.WithCancel(context.Background())
}

// over is closed when the time of a gateway is over, which is found out from the first call on. A time that has ended by then is over when
// it returns: what is passed on to a gateway that has begun another one would be given up there.
func (o *others) over(owner Owner) <-chan struct{} {
	of := o.meet(owner)
	<-of.looked
	return of.over
}

// meet begins to look at a gateway, unless it was met before.
func (o *others) meet(owner Owner) period {
	o.mu.Lock()
	defer o.mu.Unlock()
	if of, ok := o.met[owner]; ok {
		return of
	}
	if len(o.met) >= mostMet {
		maps.DeleteFunc(o.met, func(_ Owner, of period) bool {
			select {
			case <-of.over:
				return true
			default:
				return false
			}
		})
	}
	of := period{make(chan struct{}), make(chan struct{})}
	o.met[owner] = of
	if o.ctx.Err() == nil {
		o.waits.Go(func() { o.outlast(owner, of) })
	} else {
		close(of.looked)
	}
	return of
}

// outlast waits for the end of a gateway's time.
func (o *others) outlast(owner Owner, of period) {
	term := owner.term(o.opts.Gateway)
	if lease.Over(o.ctx, o.from, term, leaseOptions()) {
		close(of.over)
		close(of.looked)
	} else {
		close(of.looked)
		if lease.Outlast(o.ctx, o.from, term, leaseOptions()) != nil {
			return // the store is closed
		}
		close(of.over)
	}
	if o.opts.Outlasted != nil && owner.At != "" {
		o.opts.Outlasted(owner.At)
	}
}

func (o *others) close() {
	o.mu.Lock()
	o.end()
	o.mu.Unlock()
	o.waits.Wait()
}
