package latency

import (
	"encoding/json"
	"testing"
	"time"
)

func TestEveryDurationIsInItsBucket(t *testing.T) {
	for d := time.Duration(0); d < 80*time.Hour; d = d*9/8 + time.Microsecond {
		i := index(d)
		if i == buckets-1 {
			if d < 60*time.Hour {
				t.Errorf("%s is in the last bucket", d)
			}
			continue
		}
		lower := time.Duration(0)
		if i > 0 {
			lower = upper(i - 1)
		}
		if whole := d.Truncate(time.Microsecond); whole < lower || whole >= upper(i) {
			t.Errorf("%s is in bucket %d: %s to %s", d, i, lower, upper(i))
		}
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	if h.Quantile(0.5) != 0 {
		t.Error("an empty histogram has a quantile")
	}
	for i := 1; i <= 1000; i++ {
		h.Add(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond} {
		if got := h.Quantile(q); got < want || got > want*5/4 {
			t.Errorf("quantile %v: %s, want %s to a quarter more", q, got, want)
		}
	}
	if h.Count() != 1000 || h.Quantile(1) != time.Second || h.Below(time.Hour) != 1000 || h.Below(0) != 0 {
		t.Errorf("count %d, max %s, below an hour %d", h.Count(), h.Quantile(1), h.Below(time.Hour))
	}
}

func TestJSONAndMerge(t *testing.T) {
	var a, b, sum Histogram
	a.Add(time.Millisecond)
	b.Add(3 * time.Second)
	text, err := json.Marshal(&a)
	if err != nil {
		t.Fatal(err)
	}
	var back Histogram
	if err := json.Unmarshal(text, &back); err != nil || back != a {
		t.Errorf("%s came back as %+v, %v", text, back, err)
	}
	sum.Merge(&a)
	sum.Merge(&b)
	if sum.Count() != 2 || sum.Quantile(1) != 3*time.Second || sum.Sum() != 3001*time.Millisecond {
		t.Errorf("sum %+v", sum)
	}
	if err := json.Unmarshal([]byte(`{"buckets":[4000,1]}`), &back); err == nil {
		t.Error("a bucket that does not exist was taken")
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Add(time.Millisecond) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
