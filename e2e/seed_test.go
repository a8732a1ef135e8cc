package e2e

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seeded is a source for what a part of a test draws: the same in each run, another one for each test and each part. It is not
// safe for concurrent use, so each goroutine has its own part. OUTLIVE_TEST_SEED replaces the fixed seed 1, as in
// internal/testing/tier, which this module does not import; a failed test names the seed.
func seeded(t testing.TB, part string) *rand.Rand {
	t.Helper()
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name() + "\n" + part)) // a hash takes everything
	return rand.New(rand.NewPCG(testSeed(t), name.Sum64()))
}

// testSeed is OUTLIVE_TEST_SEED, or 1.
func testSeed(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(1)
	if text := os.Getenv("OUTLIVE_TEST_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("OUTLIVE_TEST_SEED=%s is no number", text)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("drawn with OUTLIVE_TEST_SEED=%d", seed)
		}
	})
	return seed
}
