package monitor

import (
	"os"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
)

func TestMain(m *testing.M) {
	if actor := os.Getenv(agenttest.Role); actor != "" {
		os.Exit(act(actor))
	}
	os.Exit(inMemory(func() int { return verifyNoLeaks(m) }))
}
