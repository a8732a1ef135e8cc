package cli

import (
	"context"
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/event"
	"github.com/outlive-mcp/outlive/internal/proxy"
	"github.com/outlive-mcp/outlive/internal/supervise"
)

// inherited lets signals ask something of a program in inherit mode.
type inherited struct{ *proxy.Inherited }

func (h inherited) Restart(_ context.Context, source supervise.Source, reason string) error {
	h.RequestRestart(source, reason)
	return nil
}

// runInherit is `outlive run --mode inherit`: S0 to the letter. The program has our three descriptors.
func runInherit(io streams, s *settings) (err error) {
	k, err := openSinks(io, s, true)
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	h := proxy.NewInherited(proxy.InheritOptions{
		Command: s.backend.Command, Name: s.backend.Name, StateDir: s.serverState,
		Supervise: s.backend.Supervise, Sink: k,
	})
	prepareState(s, k)
	k.say(event.ProxyStarted, "Watchdog supervisor starting")
	stop := handleSignals(inherited{h}, k)
	defer stop()
	code := h.Run()
	k.say(event.ProxyStopped, "Watchdog supervisor stopped", slog.Int(event.KeyExitCode, code))
	if code != 0 {
		return &exitError{code: code}
	}
	return nil
}
