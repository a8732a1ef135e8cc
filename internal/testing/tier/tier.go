package tier

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	_ "pgregory.net/rapid" // has defined its flags before init sets one of them
)

func init() {
	if os.Getenv("RAPID_SEED") != "" {
		return
	}
	if err := flag.Set("rapid.seed", "1"); err != nil {
		panic(err)
	}
}

// Name is the tier of this run: door, full or hunt. OUTLIVE_TIER sets it; unset it is door.
func Name() string {
	if name := os.Getenv("OUTLIVE_TIER"); name != "" {
		return name
	}
	return "door"
}

// NeedFull skips the test in the door's tier: why says what makes it no function of the tree alone, or what it costs.
func NeedFull(t testing.TB, why string) {
	t.Helper()
	if Name() == "door" {
		t.Skip("left to .ci/run full: " + why)
	}
}

// Rand is a source for what a test draws: the same in each run, another one for each test. OUTLIVE_TEST_SEED replaces the
// fixed seed 1; a failed test names the seed.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := Seed(t)
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name())) // a hash takes everything
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("drawn with OUTLIVE_TEST_SEED=%d", seed)
		}
	})
	return rand.New(rand.NewPCG(seed, name.Sum64()))
}

// Seed is the number that [Rand] draws from: OUTLIVE_TEST_SEED, or 1.
func Seed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("OUTLIVE_TEST_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("OUTLIVE_TEST_SEED=%s is no number", text)
	}
	return seed
}
