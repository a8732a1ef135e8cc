package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

// tellDeclared describes what a declaration achieves: what is seen, what can be done, who is notified, and the next
// step.
func tellDeclared(ctx context.Context, w io.Writer, o monitor.Options, r *registry.Registry, a registry.Agent) error {
	fmt.Fprintf(w, "%s is declared in %s: %s in %s\n", a.Name, registryOf(o), a.Kind, a.Path)
	fmt.Fprintln(w, "  watched:    "+strings.Join(watchedOf(a), ", "))
	fmt.Fprintln(w, "  on a stall: "+helpOf(a))
	if a.Kind == registry.Command && len(a.Start.Cmd) > 0 && a.Expect.Done == (registry.Done{}) {
		fmt.Fprintln(w, "  done:       when it exits with status 0; --done never is for what is not meant to end")
	}
	if len(r.Channels) == 0 && (os.Getenv(envTelegramToken) == "" || os.Getenv(envTelegramChat) == "") {
		fmt.Fprintln(w, "  nobody is told: give the monitor TELEGRAM_BOT_TOKEN and TELEGRAM_CHAT_ID, or the registry channels")
	}
	for _, other := range r.Agents {
		if other.Name != a.Name && other.Path == a.Path && other.Kind == a.Kind && a.Match.PIDFile == "" && isVendors(a.Kind) {
			fmt.Fprintf(w, "  careful:    %s is %s in the same directory: only outlive agent run, or a --pidfile, tells the two apart\n", other.Name, other.Kind)
		}
	}
	view, err := monitor.Inspect(ctx, o)
	if err != nil {
		return fail(exitFailure, "it is declared, and cannot be looked at: %w", err)
	}
	for i, command := range nextFor(o, view, a) {
		fmt.Fprintf(w, "  %-10s  %s\n", onFirst(i, "next:"), command)
	}
	return nil
}

// isVendors reports a kind whose processes and sessions are recognised.
func isVendors(k registry.Kind) bool { return agentcli.Of(k).Known() }

// watchedOf lists what can be seen of an agent.
func watchedOf(a registry.Agent) []string {
	var list []string
	if isVendors(a.Kind) {
		list = append(list, "its process in that directory", "its sessions")
		if agentcli.Of(a.Kind).Hooks != nil {
			list = append(list, "its hooks (outlive hooks install "+string(a.Kind)+")")
		}
	}
	if a.Match.PIDFile != "" {
		list = append(list, "the process of "+a.Match.PIDFile)
	}
	if len(a.Start.Cmd) > 0 && !isVendors(a.Kind) {
		list = append(list, "its process once outlive has started it")
	}
	if a.Expect.Beat > 0 {
		return append(list, "heartbeats every "+recovery.FormatDuration(a.Expect.Beat))
	}
	return append(list, "heartbeats if there are any")
}

// helpOf lists what the monitor can do with this declaration.
func helpOf(a registry.Agent) string {
	var list []string
	if len(a.Start.Nudge) > 0 {
		list = append(list, "it is told to go on")
	}
	if isVendors(a.Kind) || a.Match.PIDFile != "" {
		list = append(list, "a turn that hangs is interrupted")
	}
	if len(a.Start.Resume) > 0 {
		list = append(list, "its session is resumed")
	}
	if len(a.Start.Cmd) > 0 {
		list = append(list, "it is started anew")
	}
	list = append(list, "a human is told")
	text := strings.Join(list, ", ")
	if len(a.Start.Resume) == 0 && len(a.Start.Cmd) == 0 {
		text += "; nothing says how it is started (-- CMD) or gone on with (--resume)"
		if command := agentcli.Of(a.Kind).Resume; command != "" {
			text += ", such as '" + command + "'"
		}
	}
	return text
}

// nextFor are the commands that bring the agent further: a monitor, unless one runs, and what makes it see the agent.
func nextFor(o monitor.Options, view monitor.View, a registry.Agent) []string {
	at := homeFlag(o.Home)
	i := slices.IndexFunc(view.Findings, func(f monitor.Finding) bool { return f.Key == a.Name })
	running := i >= 0 && view.Findings[i].Process != (process.Identity{})
	var list []string
	if view.Running == 0 {
		list = append(list, "outlive monitor"+at)
	}
	switch {
	case running || len(a.Start.Cmd) == 0 && (isVendors(a.Kind) || a.Match.PIDFile != ""):
		if view.Running == 0 {
			return list // it is seen by itself
		}
		return append(list, "outlive agent show "+a.Name+at)
	case len(a.Start.Cmd) > 0:
		return append(list, "outlive agent start "+a.Name+at)
	}
	return append(list, fmt.Sprintf("outlive heartbeat %s%s   # from the agent, every %s", a.Name, at, beatText(a)))
}

func beatText(a registry.Agent) string {
	if a.Expect.Beat > 0 {
		return recovery.FormatDuration(a.Expect.Beat)
	}
	return "minute or two"
}
