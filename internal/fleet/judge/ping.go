package judge

import (
	"context"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// PingAddress is where a machine is asked whether it lives.
func PingAddress(host string) string { return engine.Key("ping", host) }

// AnswerPings answers for a machine that it lives, until stop is called.
func AnswerPings(bus interface {
	Serve(address string, h engine.Handler) (stop func(), err error)
}, host string) (stop func(), err error) {
	return bus.Serve(PingAddress(host), func(context.Context, string, []byte) []byte { return []byte("lives") })
}
