package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
)

const agentLong = `Declare unattended agents, look at them, and have something done about them by the monitor.

Looking (list, show, explain, report, logs, scan) changes nothing, and needs no running monitor. What is to be done about an agent
(start, restart, resume, stop, say, budget-reset) is done by outlive monitor, which has to run. To take one over: attach.`

func newAgent(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Declare and look at unattended agents, start, resume or stop one",
		Long:  agentLong,
		Args:  takes(0, 0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newAgentAdd(io), newAgentRemove(io), newAgentPause(io), newAgentUnpause(io), newAgentScan(io),
		newAgentList(io), newAgentShow(io), newAgentExplain(io), newAgentRun(io), newAgentAttach(io), newAgentLogs(io), newAgentReport(io))
	cmd.AddCommand(newAgentWishes(io)...)
	return cmd
}

func defineHome(fl *pflag.FlagSet, home *string) {
	fl.StringVar(home, "home", "", "the monitor's home (default: "+shownHome+")")
}

// lookOptions are the options for looking at a home, which are its monitor's, too.
func lookOptions(given string) (monitor.Options, error) {
	home, err := monitorHome(given)
	if err != nil {
		return monitor.Options{}, &exitError{exitUsage, err}
	}
	o := agentsOptions(home)
	o.Environ, o.Secrets = agentEnviron(os.Environ()), monitorSecrets
	var stale int
	err = errors.Join(positive("PIV_HEARTBEAT_STALE_MS", &stale), positive("PIV_MAX_RESTART_ATTEMPTS", &o.Restarts))
	if err != nil {
		return o, &exitError{exitUsage, err}
	}
	o.Stale = time.Duration(stale) * time.Millisecond
	return o, nil
}

// inspectHome looks at all agents of a home.
func inspectHome(ctx context.Context, given string) (monitor.Options, monitor.View, error) {
	o, err := lookOptions(given)
	if err != nil {
		return o, monitor.View{}, err
	}
	view, err := monitor.Inspect(ctx, o)
	if err != nil {
		return o, view, &exitError{exitFailure, err}
	}
	return o, view, nil
}

// findingNamed finds an agent by its key or else by its name.
func findingNamed(o monitor.Options, view monitor.View, name string) (monitor.Finding, error) {
	for _, f := range view.Findings {
		if f.Key == name {
			return f, nil
		}
	}
	var names []string
	for _, f := range view.Findings {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Key)
	}
	return monitor.Finding{}, noSuchAgent(o, name, names)
}

// noSuchAgent says which agents there are.
func noSuchAgent(o monitor.Options, name string, names []string) error {
	if len(names) == 0 {
		return fail(exitFailure, "no agent %q: none is declared in %s; declare one: outlive agent add NAME", name, registryOf(o))
	}
	return fail(exitFailure, "no agent %q in %s; there are: %s", name, registryOf(o), strings.Join(names, ", "))
}

// declaredAgent is the agent of that name in a registry.
func declaredAgent(o monitor.Options, r *registry.Registry, name string) (registry.Agent, error) {
	if a, ok := r.Agent(name); ok {
		return a, nil
	}
	var names []string
	for _, a := range r.Agents {
		names = append(names, a.Name)
	}
	return registry.Agent{}, noSuchAgent(o, name, names)
}

// registryOf is where the registry of a home is.
func registryOf(o monitor.Options) string {
	if o.Registry != "" {
		return o.Registry
	}
	return filepath.Join(o.Home, "registry.yaml")
}

// editRegistry changes the registry of a home, which is made when it is not there. What it says afterwards is the answer.
func editRegistry(io streams, given string, change func(*registry.Document) error) (monitor.Options, *registry.Registry, error) {
	home, err := agentsHome(given)
	if err != nil {
		return monitor.Options{}, nil, &exitError{exitUsage, err}
	}
	o := agentsOptions(home)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return o, nil, fail(exitFailure, "%w", err)
	}
	r, err := registry.Edit(registryOf(o), registry.Options{Home: o.UserHome}, time.Now(), change)
	switch {
	case errors.Is(err, registry.ErrForeign):
		return o, nil, fail(exitFailure, "%s: %w; leave out --home, and the agent is declared in outlive's own registry", registryOf(o), err)
	case err != nil:
		return o, nil, fail(exitFailure, "%w", err)
	}
	for _, w := range r.Warnings {
		fmt.Fprintln(io.err, "outlive: warning: "+r.Render(w))
	}
	return o, r, nil
}

// flagsBeforeDash are the flags of a verb that takes another command behind --, in the order in which help shows them.
func flagsBeforeDash(cmd *cobra.Command) *pflag.FlagSet {
	cmd.DisableFlagsInUseLine = true // they stand before NAME's --, not at the end
	cmd.SetFlagErrorFunc(withoutDash)
	cmd.Flags().SortFlags = false
	return cmd.Flags()
}

// withoutDash adds to a mistake in the flags where those of a command go.
func withoutDash(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w; a command and its flags go behind --: outlive %s NAME -- CMD", err, strings.TrimPrefix(cmd.CommandPath(), "outlive "))
}

// homeFlag is what leads a command to a home; "" for the one that it finds by itself.
func homeFlag(home string) string {
	if usual, err := monitorHome(""); err == nil && usual == home {
		return ""
	}
	return " --home " + incident.Quoted(home)
}

// briefly is a length of time as a table shows it: 40s, 12m, 3h20m, 2d4h.
func briefly(d time.Duration) string {
	const day = 24 * time.Hour
	pair := func(big, small time.Duration, bigUnit, smallUnit string) string {
		s := fmt.Sprintf("%d%s", d/big, bigUnit)
		if rest := d % big / small; rest > 0 {
			s += fmt.Sprintf("%d%s", rest, smallUnit)
		}
		return s
	}
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(d, 0)/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return pair(time.Hour, time.Minute, "h", "m")
	}
	return pair(day, time.Hour, "d", "h")
}
