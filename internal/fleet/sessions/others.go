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
	met   map[Owner]chan struct{} // closed when its time is over
}

func (o *others) begin(from lease.Registry, opts Options) {
	o.from, o.opts, o.met = from, opts, map[Owner]chan struct{}{}
	o.ctx, o.end = context.WithCancel(context.Background())
}

// over is closed when the time of a gateway is over, which is found out from the first call on. It does not block.
func (o *others) over(owner Owner) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if over := o.met[owner]; over != nil {
		return over
	}
	if len(o.met) >= mostMet {
		maps.DeleteFunc(o.met, func(_ Owner, over chan struct{}) bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		})
	}
	over := make(chan struct{})
	o.met[owner] = over
	if o.ctx.Err() == nil {
		o.waits.Go(func() { o.outlast(owner, over) })
	}
	return over
}

// outlast waits for the end of a gateway's time.
func (o *others) outlast(owner Owner, over chan<- struct{}) {
	if lease.Outlast(o.ctx, o.from, owner.term(o.opts.Gateway), leaseOptions()) != nil {
		return // the store is closed
	}
	close(over)
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
