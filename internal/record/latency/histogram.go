package latency

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"
	"time"
)

const (
	// fine is the number of buckets for each doubling of the time, as a power of two.
	fine = 2
	// buckets is enough for 2^38 µs (76 hours); what took longer is counted in the last one.
	buckets = (38 - fine + 1) << fine
)

// Histogram counts durations. The zero value is empty. Adding allocates nothing.
type Histogram struct {
	count  uint64
	sum    time.Duration
	max    time.Duration
	bucket [buckets]uint32
}

// index is the bucket of a duration: 0, 1, 2, 3 µs, then four buckets for each doubling.
func index(d time.Duration) int {
	us := uint64(max(0, d.Microseconds()))
	shift := bits.Len64(us) - 1 - fine
	if shift < 0 {
		return int(us)
	}
	return min((shift+1)<<fine+int(us>>shift)&(1<<fine-1), buckets-1)
}

// upper is the end of a bucket.
func upper(i int) time.Duration {
	if i < 1<<fine {
		return time.Duration(i+1) * time.Microsecond
	}
	shift := i>>fine - 1
	return time.Duration((i&(1<<fine-1)+1<<fine+1)<<shift) * time.Microsecond
}

// Add counts one duration; a negative one counts as 0.
func (h *Histogram) Add(d time.Duration) {
	d = max(0, d)
	h.count++
	h.sum += d
	h.max = max(h.max, d)
	h.bucket[index(d)]++
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(o *Histogram) {
	h.count += o.count
	h.sum += o.sum
	h.max = max(h.max, o.max)
	for i, n := range o.bucket {
		h.bucket[i] += n
	}
}

// Subtract takes away what another histogram has counted that was merged into this one; nil: nothing. Max stays.
func (h *Histogram) Subtract(o *Histogram) {
	if o == nil {
		return
	}
	h.count -= o.count
	h.sum -= o.sum
	for i, n := range o.bucket {
		h.bucket[i] -= n
	}
}

// Count is how many durations were added.
func (h *Histogram) Count() uint64 { return h.count }

// Sum is all durations together.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Max is the longest duration; 0 if there is none.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile is the duration that a share of q (0 to 1) of all did not exceed, at most a quarter too long; 0 if there is none.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	for i, n := range h.bucket {
		if uint64(n) > rank {
			return min(upper(i), h.max)
		}
		rank -= uint64(n)
	}
	return h.max
}

// Below is how many durations surely did not exceed d: those of the buckets that end there or before.
func (h *Histogram) Below(d time.Duration) (n uint64) {
	for i, in := range h.bucket {
		if upper(i) > d {
			break
		}
		n += uint64(in)
	}
	return n
}

// written is a histogram as JSON.
type written struct {
	Count uint64   `json:"count"`
	SumUS int64    `json:"sum_us"`
	MaxUS int64    `json:"max_us"`
	P50US int64    `json:"p50_us"`
	P99US int64    `json:"p99_us"`
	At    []uint32 `json:"buckets"` // pairs: which bucket, how many
}

// MarshalJSON writes the numbers and the buckets that are not empty, times in microseconds.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	w := written{h.count, h.sum.Microseconds(), h.max.Microseconds(), h.Quantile(0.5).Microseconds(), h.Quantile(0.99).Microseconds(), []uint32{}}
	for i, n := range h.bucket {
		if n > 0 {
			w.At = append(w.At, uint32(i), n)
		}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON has written.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var w written
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*h = Histogram{count: w.Count, sum: time.Duration(w.SumUS) * time.Microsecond, max: time.Duration(w.MaxUS) * time.Microsecond}
	for pair := range slices.Chunk(w.At, 2) {
		if len(pair) < 2 || pair[0] >= buckets {
			return fmt.Errorf("histogram: no bucket %d", pair[0])
		}
		h.bucket[pair[0]] = pair[1]
	}
	return nil
}
