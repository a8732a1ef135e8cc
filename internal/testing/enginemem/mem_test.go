package enginemem

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/testing/enginetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEngine(t *testing.T) {
	enginetest.Run(t, func(_ *testing.T, members int) []engine.Engine {
		e := New()
		list := make([]engine.Engine, members)
		for i := range list {
			list[i] = e
		}
		return list
	})
}
