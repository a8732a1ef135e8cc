package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/hooks"
)

func hookLong() string {
	return `The program that an agent CLI runs at its hooks, as outlive hooks install sets it up: the event comes as JSON on stdin
and is left in the home for outlive monitor, which need not be running.

With --ask, or "ask": true in HOME/hooks/policy.json, a permission request of ` + asking(" or ") + ` waits for an answer
given through the monitor, for example from a phone. Nobody answering, or no monitor that could: nothing is printed, and
the CLI's own dialog decides. Every decision is written to HOME/hooks/decisions.jsonl.

EXIT STATUS
  0  done
  1  anything that went wrong; the agent goes on. Never 2, by which a hook forbids`
}

// hookFlags are the flags of `outlive hook`.
type hookFlags struct {
	home string
	ask  bool
	wait time.Duration
}

// hookMistake is the exit status for a wrong command line: agents treat 2 as a veto.
func hookMistake(_ *cobra.Command, err error) error { return &exitError{exitFailure, err} }

func newHook(io streams) *cobra.Command {
	var f hookFlags
	cmd := &cobra.Command{
		Use:   "hook " + vendorNames("|") + " [flags]",
		Short: "Take an event from an agent CLI's hook",
		Long:  hookLong(),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || hooks.VendorNamed(args[0]) == nil {
				return fail(exitFailure, "hook %s: must be one of %s", strings.Join(args, " "), vendorNames(", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), io, hooks.VendorNamed(args[0]))
		},
	}
	cmd.SetFlagErrorFunc(hookMistake)
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.ask, "ask", false, "have permission requests answered through the monitor")
	fl.DurationVar(&f.wait, "wait", hooks.DefaultWait, "how long a permission request waits for its answer")
	defineHome(fl, &f.home)
	return cmd
}

// run is `outlive hook`. A panic would end the process with 2, which forbids.
func (f *hookFlags) run(ctx context.Context, std streams, v *hooks.Vendor) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fail(exitFailure, "hook: %v", p)
		}
	}()
	home, err := agentsHome(f.home)
	if err != nil {
		return &exitError{exitFailure, err}
	}
	if f.wait <= 0 {
		return fail(exitFailure, "--wait %s: must be above 0", f.wait)
	}
	payload, err := io.ReadAll(io.LimitReader(std.in, hooks.MaxPayload))
	if err != nil {
		return fail(exitFailure, "read the event: %w", err)
	}
	// SIGHUP: the terminal was closed. Each of them must leave no open request behind.
	ctx, stop := untilInterrupted(ctx, syscall.SIGHUP)
	defer stop()
	reply, err := hooks.Run(ctx, hooks.Options{
		Vendor: v, Dir: hooks.Dir(home), Ask: f.ask, Wait: f.wait, Parent: os.Getppid(),
	}, payload)
	if len(reply) > 0 {
		if _, e := std.out.Write(reply); e != nil && err == nil {
			err = fmt.Errorf("tell the agent: %w", e)
		}
	}
	return asFailure(err)
}

// shownHome is the default of --home as help shows it.
const shownHome = "agents in outlive's state directory"

// agentsHome is the home of the monitor: the one that was given, or agents in the state directory.
func agentsHome(given string) (string, error) {
	if given != "" {
		return expandHome(given)
	}
	return filepath.Join(stateDir(), "agents"), nil
}

func vendorNames(separator string) string { return strings.Join(vendorList(), separator) }

func vendorList() []string {
	var names []string
	for _, v := range hooks.Vendors() {
		names = append(names, v.Name)
	}
	return names
}
