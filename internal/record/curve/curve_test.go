package curve

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A server is called, rests, is called again; outlive looks each minute, and whoever shows the curve asks now and then.
func TestADayOfAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Recorder
		var mu sync.Mutex
		var is Totals
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.Run(ctx, func() map[string]Totals {
				mu.Lock()
				defer mu.Unlock()
				copied := is
				return map[string]Totals{"till": copied, "never called": {}}
			})
		}()
		call := func(took time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			is.Calls++
			is.Latency.Add(took)
		}
		minute := func() { time.Sleep(time.Minute); synctest.Wait() }

		minute() // it has not been called: nothing is kept
		if all := r.After(0); len(all) != 0 {
			t.Errorf("before the first call: %v", all)
		}
		for range 99 {
			call(10 * time.Millisecond)
		}
		call(time.Second)
		use := func(cpu map[int]time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			is.Errors, is.Memory, is.CPU = 4, 1<<20, cpu
		}
		use(map[int]time.Duration{7: time.Second})
		minute()
		use(map[int]time.Duration{7: 31 * time.Second, 8: time.Hour}) // another process has come: what it used before is not of this minute
		minute()
		var shown *Curve
		ask := func() {
			text, err := json.Marshal(r.After(shown.Newest()))
			if err != nil {
				t.Fatal(err)
			}
			var parts map[string]Part
			if err := json.Unmarshal(text, &parts); err != nil {
				t.Fatal(err)
			}
			shown = shown.With(parts["till"])
		}
		ask()
		call(time.Millisecond)
		minute()
		ask()
		ask() // nothing new
		got := shown.Last(5, time.Now())
		for n := range got { // a bucket is a quarter wide
			got[n].P50, got[n].P99 = float32(int(got[n].P50*100))/100, float32(int(got[n].P99*10))/10
		}
		want := []Point{
			{}, {}, {Known: true, Calls: 100, Errors: 4, P50: 0.01, P99: 1, Memory: 1 << 20},
			{Known: true, Memory: 1 << 20, CPU: 0.5}, {Known: true, Calls: 1, Memory: 1 << 20},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		// A minute in which it could not be asked is a gap, and its calls are counted when it can.
		mu.Lock()
		kept := is
		is = Totals{}
		mu.Unlock()
		minute()
		mu.Lock()
		is = kept
		mu.Unlock()
		call(time.Millisecond)
		minute()
		ask()
		if got := shown.Last(2, time.Now()); got[0].Known || got[1].Calls != 1 {
			t.Errorf("after a minute without an answer: %+v", got)
		}
		cancel()
		<-done
	})
}

// The clock is set back by a moment, and the timer, which goes by another one, ends before the minute does: no call is lost. Where it is set
// back by an hour, no minute is said to have the calls of that hour.
func TestAClockThatIsSetBack(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var r Recorder
	for _, look := range []struct {
		at    time.Duration
		calls int64
	}{{0, 10}, {time.Minute - time.Millisecond, 15}, {time.Minute, 16}, {-time.Hour, 20}, {2 * time.Minute, 21}} {
		r.take(noon.Add(look.at), map[string]Totals{"till": {Calls: look.calls}})
	}
	all := r.After(0)["till"].Points
	if last := all[len(all)-3:]; last[0].Calls != 10 || last[1].Calls != 6 || last[2].Calls != 1 {
		t.Errorf("%+v", last)
	}
}

// The clock of a machine may be years ahead until it is set: what comes then is kept all the same.
func TestAClockThatWasInTheFuture(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var r Recorder
	r.take(noon.AddDate(10, 0, 0), map[string]Totals{"till": {Calls: 10}})
	shown := (*Curve)(nil).With(r.After(0)["till"])
	r.take(noon, map[string]Totals{"till": {Calls: 15}})
	r.take(noon.Add(time.Minute), map[string]Totals{"till": {Calls: 16}})
	if got := shown.With(r.After(0)["till"]).Last(2, noon.Add(time.Minute)); got[0].Calls != 5 || got[1].Calls != 1 {
		t.Errorf("%+v", got)
	}
}

// A server that is not there any more is shown for a day, and takes no room afterwards.
func TestAServerThatIsTakenOut(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	var r Recorder
	r.take(noon, map[string]Totals{"till": {Calls: 10}, "shop": {Calls: 1}})
	for n := range int64(Minutes + 2) {
		r.take(noon.Add(time.Duration(n+1)*time.Minute), map[string]Totals{"shop": {Calls: n + 2}})
		if _, kept := r.servers["till"]; kept != (n < Minutes-1) {
			t.Fatalf("after %d minutes: %v", n+1, kept)
		}
	}
	if len(r.servers) != 1 {
		t.Errorf("%d are kept", len(r.servers))
	}
}

// What is older than a day goes; minutes that nobody has seen, such as those of a machine that slept, are gaps.
func TestWhatACurveForgets(t *testing.T) {
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	from := minuteOf(noon)
	var c Curve
	for n := range int64(Minutes + 10) {
		c.add(from+n, Point{Known: true, Calls: float32(n)})
	}
	c.add(from+3, Point{Known: true, Calls: 4711}) // the clock was set back
	if list := c.Last(Minutes, noon.Add((Minutes+10)*time.Minute)); list[0].Calls != 10 || list[Minutes-1].Calls != Minutes+9 {
		t.Errorf("a day goes from %v to %v", list[0], list[Minutes-1])
	}
	c.add(from+Minutes+100, Point{Known: true, Calls: 1})
	known := 0
	for _, p := range c.Last(Minutes, noon.Add((Minutes+101)*time.Minute)) {
		if p.Known {
			known++
		}
	}
	if known != Minutes-90 {
		t.Errorf("%d minutes are known, want %d", known, Minutes-90)
	}
	shown := (*Curve)(nil).With(c.after(0))
	c.add(from+10*Minutes, Point{Known: true})
	if p := c.after(0); p.First != from+10*Minutes || len(p.Points) != 1 || !p.Points[0].Known {
		t.Errorf("after days of sleep: %d points", len(p.Points))
	}
	if grown := shown.With(c.after(shown.Newest())); *grown != c {
		t.Error("who has seen it before has another one")
	}
	var empty *Curve
	if empty.Newest() != 0 || len((&Curve{}).after(0).Points) != 0 && (&Curve{}).at(1).Known {
		t.Error("an empty curve has something")
	}
}

func TestPartsThatAreNone(t *testing.T) {
	for _, text := range []string{`{"first":-1,"points":[]}`, `{"first":9223372036854775807,"points":[null]}`, `[]`, `{"first":"x"}`} {
		var p Part
		if json.Unmarshal([]byte(text), &p) == nil {
			t.Errorf("%s was read", text)
		}
	}
	tooLong, _ := json.Marshal(written{Points: make([]*[6]float32, Minutes+1)})
	if json.Unmarshal(tooLong, &Part{}) == nil {
		t.Error("a part of more than a day was read")
	}
}
