package agentrun

import "time"

// rateWindow is the time over which a rate is told, in seconds.
const rateWindow = 5

// rate counts what was written in the last seconds.
type rate struct {
	second int64 // of the last count
	counts [rateWindow]int64
}

func (r *rate) add(n int, now time.Time) {
	r.forget(now)
	r.counts[r.second%rateWindow] += int64(n)
}

// perSecond is the mean of the window; 0 once it is empty.
func (r *rate) perSecond(now time.Time) float64 {
	r.forget(now)
	var sum int64
	for _, n := range r.counts {
		sum += n
	}
	return float64(sum) / rateWindow
}

// forget empties the counts of seconds that are out of the window by now. A clock that was set back goes on counting in the
// second it has come to.
func (r *rate) forget(now time.Time) {
	s := now.Unix()
	if s < r.second || s-r.second >= rateWindow {
		r.counts = [rateWindow]int64{}
	} else {
		for i := r.second + 1; i <= s; i++ {
			r.counts[i%rateWindow] = 0
		}
	}
	r.second = s
}
