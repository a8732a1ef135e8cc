package cli

import (
	"log/slog"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/line/proxy"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// runInherit is `outlive run --mode inherit`: the watchdog to the letter (WD-7). The program has our three descriptors.
func runInherit(io streams, s *settings) (err error) {
	child.CloseInheritedOnExec()
	child.PrepareToInherit()
	k, err := openSinks(io, s, logline.Options{Inherit: true})
	if err != nil {
		return err
	}
	defer k.close()
	defer tellFatal(k, &err)
	h := proxy.NewInherited(proxy.InheritOptions{
		Command: s.backend.Command, Name: s.backend.Name, StateDir: s.serverState,
		KillMode: s.killMode, Supervise: s.backend.Supervise, Sink: k,
	})
	prepareState(s, k)
	k.say(event.ProxyStarted, "Watchdog supervisor starting")
	stop := handleSignals(h, k)
	defer stop()
	done := serveControl(reachable{server: h, settings: s, sinks: k, client: ourClient()})
	defer done()
	code := h.Run()
	k.say(event.ProxyStopped, "Watchdog supervisor stopped", slog.Int(event.KeyExitCode, code))
	return exitWith(code)
}
