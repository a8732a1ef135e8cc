package monitor

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if actor := os.Getenv("OUTLIVE_TEST_ACTOR"); actor != "" {
		os.Exit(act(actor))
	}
	os.Exit(inMemory(func() int { return verifyNoLeaks(m) }))
}
