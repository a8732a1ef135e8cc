package tier

import (
	"flag"
	"os"
	"testing"
)

func TestRapidHasItsSeed(t *testing.T) {
	want := os.Getenv("RAPID_SEED")
	if want == "" {
		want = "1"
	}
	if got := flag.Lookup("rapid.seed").Value.String(); got != want {
		t.Errorf("rapid draws with seed %s, want %s", got, want)
	}
}

func TestRandIsTheSameInEachRun(t *testing.T) {
	t.Setenv("OUTLIVE_TEST_SEED", "")
	draw := func(t *testing.T) (all [3]uint64) {
		r := Rand(t)
		for i := range all {
			all[i] = r.Uint64()
		}
		return all
	}
	first := draw(t)
	if again := draw(t); first != again {
		t.Errorf("drew %v, then %v", first, again)
	}
	t.Run("of another name", func(t *testing.T) {
		if other := draw(t); first == other {
			t.Errorf("two tests draw the same: %v", other)
		}
	})
	t.Setenv("OUTLIVE_TEST_SEED", "2")
	if other := draw(t); first == other {
		t.Errorf("two seeds draw the same: %v", other)
	}
}

func TestNeedFullSkipsAtTheDoorAlone(t *testing.T) {
	for name, want := range map[string]bool{"": true, "door": true, "full": false, "hunt": false} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OUTLIVE_TIER", name)
			skipped := false
			t.Run("inner", func(t *testing.T) {
				defer func() { skipped = t.Skipped() }()
				NeedFull(t, "a reason")
			})
			if skipped != want {
				t.Errorf("skipped %v, want %v", skipped, want)
			}
		})
	}
}
