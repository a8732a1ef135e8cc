package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentrun"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

const agentAttachLong = `Join the terminal of an agent that outlive has started, to look at it or to take it over: what you type goes to the agent, and
what it draws is on your terminal. Ctrl-\ leaves it, and it goes on; so does closing the window. The key is told on stderr.

Several people can join at once: all see the same, all can type, and the terminal is as large as the smallest window. For
30 minutes after somebody has joined or typed the monitor leaves the agent alone. outlive agent list says who is there.

A terminal have the agents that the monitor starts with a command that wants one (claude without -p, codex without exec), those
with terminal: true under start in the registry, and those behind outlive agent run in a terminal. The others only have output:
outlive agent logs -f NAME. Only the user who runs the agent, and root, can join. Not on Windows.

EXIT STATUS
  0    you have left it; or the agent has ended with status 0
  1    it does not run, or has no terminal; or the connection was lost
  2    a mistake in the command line
  n    the agent's own, when it has ended meanwhile; 128+n when signal n ended it, or this`

// attachFlags are the flags of `outlive agent attach`.
type attachFlags struct {
	home     string
	readOnly bool
}

func newAgentAttach(io streams) *cobra.Command {
	var f attachFlags
	cmd := &cobra.Command{
		Use:     "attach NAME",
		Short:   "Join an agent's terminal, to look at it or take it over",
		Long:    agentAttachLong,
		Example: "  outlive agent attach shop\n  outlive agent attach shop --read-only",
		Args:    takes(1, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.attach(cmd.Context(), io, args[0]) },
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.readOnly, "read-only", false, "only look: nothing that is typed goes to the agent, and the window's size does not count")
	defineHome(fl, &f.home)
	return cmd
}

func (f *attachFlags) attach(ctx context.Context, io streams, name string) error {
	o, r, err := readRegistry(f.home)
	if err != nil {
		return err
	}
	report, err := presentReport(ctx, agentrun.Path(o.Home, name))
	if _, unknown := declaredAgent(o, r, name); unknown != nil && errors.Is(err, os.ErrNotExist) {
		return unknown
	}
	at := homeFlag(o.Home)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fail(exitFailure, "%s: outlive has not started it, so its terminal is not outlive's to join; start it: outlive agent start %s%s", name, name, at)
	case err != nil:
		return fail(exitFailure, "%s: %w", name, err)
	case report.Exit != nil:
		return fail(exitFailure, "%s does not run: it has ended at %s with status %d; start it: outlive agent start %s%s, or resume it: outlive agent resume %s%s",
			name, report.Exit.At.Local().Format(time.DateTime), report.Exit.Code, name, at, name, at)
	case report.Socket == "":
		return fail(exitFailure, "%s has no terminal, only output: outlive agent logs -f %s%s; with terminal: true under start in %s it is started with one", name, name, at, registryOf(o))
	}
	leaving, err := agentrun.Attach(ctx, agentrun.AttachOptions{
		Socket: report.Socket, In: io.in, Out: io.out, Who: userName(), ReadOnly: f.readOnly,
		Attached: func() { f.tell(io, name, report.Joined) },
	})
	switch {
	case errors.Is(err, agentrun.ErrNoTerminal):
		return fail(exitFailure, "%s: %w; to see its output: outlive agent logs -f %s%s", name, err, name, at)
	case err != nil:
		return fail(exitFailure, "%s: %w", name, err)
	case leaving.Exit != nil:
		fmt.Fprintf(io.err, "outlive: %s has ended with status %d\n", name, leaving.Exit.Code)
		return exitWith(leaving.Exit.Code)
	case leaving.Signal != "":
		return exitWith(128 + leaving.Number)
	}
	fmt.Fprintf(io.err, "outlive: you have left %s; it goes on\n", name)
	return nil
}

// beginTime is how long an agent that was started only just may take to show its terminal.
const beginTime = time.Second

// presentReport is the wrapper's report. A newly started agent may not have one yet.
func presentReport(ctx context.Context, path string) (report agentrun.Report, err error) {
	for end := time.Now().Add(beginTime); ; {
		report, err = agentrun.Read(path)
		if err == nil && report.Exit == nil || time.Now().After(end) {
			return report, err
		}
		select {
		case <-ctx.Done():
			return report, err
		case <-time.After(followEvery):
		}
	}
}

// tell says how to leave the terminal.
func (f *attachFlags) tell(io streams, name string, others []agentrun.Joined) {
	text := fmt.Sprintf("outlive: at the terminal of %s; leave it: %s", name, agentrun.LeaveKey)
	if f.readOnly {
		text += "; nothing that you type goes to it"
	}
	if len(others) > 0 {
		text += "; also here: " + joinedText(others, time.Now())
	}
	fmt.Fprintln(io.err, logline.Printable(text))
}

// joinedText says who is at an agent's terminal; "": nobody.
func joinedText(list []agentrun.Joined, now time.Time) string {
	var words []string
	for _, j := range slices.SortedFunc(slices.Values(list), func(a, b agentrun.Joined) int { return a.Since.Compare(b.Since) }) {
		word := fmt.Sprintf("%s for %s", j.Who, briefly(now.Sub(j.Since)))
		if j.ReadOnly {
			word += ", only looking"
		}
		words = append(words, word)
	}
	return strings.Join(words, "; ")
}
