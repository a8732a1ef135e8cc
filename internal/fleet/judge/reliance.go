package judge

import (
	"sync"
	"time"
)

// Reliance is what a machine leaves to the judge. Of the zero value that is nothing. Its methods may be called by any goroutine.
type Reliance struct {
	mu      sync.Mutex
	reached time.Time       // when the last digest that was acknowledged was sent; zero: none was
	left    map[string]bool // the causes of its troubles that the machine has not told of
}

// Reached notes that a digest was acknowledged, when it was sent, and its troubles.
func (r *Reliance) Reached(sent time.Time, troubles []Trouble) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reached, r.left = sent, map[string]bool{}
	for _, t := range troubles {
		if !t.Told {
			r.left[t.Cause] = true
		}
	}
}

// Leaves reports whether people are told of a cause by the judge, and not by this machine. The machine tells by itself when it does not
// reach the fleet; of what it had left to the judge before, only after keepFor, since that was told, or will be.
func (r *Reliance) Leaves(cause string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	silent := time.Since(r.reached)
	return !r.reached.IsZero() && (silent < silence || r.left[cause] && silent < keepFor)
}
