package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
	"github.com/outlive-mcp/outlive/internal/view/overview"
	"github.com/outlive-mcp/outlive/internal/view/terminal"
	"github.com/outlive-mcp/outlive/internal/view/top"
)

const topLong = `Show everything outlive keeps alive for this user on this machine in the terminal, as it changes: incidents that wait for
you, servers and agents with their state, since when and why, what outlive has done, and what the selected one writes. ? explains
the keys; r restarts, a acknowledges, t joins an agent's terminal, / filters, q leaves. The mouse is left to the terminal.

States are words and signs, not only colours; NO_COLOR is heeded. It works over ssh, from 40 columns on.

With --plain it prints one line for each thing, in sentences, and ends: for pipes and screen readers. What changes then:
outlive watch.

EXIT STATUS
  0  left, or printed
  1  there is no terminal (then: --plain), or the sockets could not be read
  2  a mistake in the command line`

// topFlags are the flags of `outlive top`.
type topFlags struct {
	home            string
	plain, readOnly bool
	on              hostFlags
}

func newTop(io streams) *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:     "top",
		Short:   "Show all servers and agents in the terminal",
		Long:    topLong,
		Example: "  outlive top\n  outlive top --plain | grep wrong\n  ssh -t machine outlive top",
		Args:    takes(0, 0),
		RunE:    interruptibly(func(ctx context.Context, _ []string) error { return f.show(ctx, io) }, syscall.SIGHUP),
	}
	fl := cmd.Flags()
	fl.SortFlags = false
	fl.BoolVar(&f.plain, "plain", false, "print lines, for pipes and screen readers, and end")
	fl.BoolVar(&f.readOnly, "read-only", false, "only look: no key restarts, answers or joins anything")
	defineHome(fl, &f.home)
	f.on.define(cmd)
	return cmd
}

func (f topFlags) show(ctx context.Context, streams streams) error {
	switch {
	case !f.plain && !(term.IsTerminal(streams.in.Fd()) && term.IsTerminal(streams.out.Fd())):
		return fail(exitFailure, "stdin and stdout have to be a terminal; for pipes: outlive top --plain")
	case !f.plain && os.Getenv("TERM") == "dumb":
		return fail(exitFailure, "this terminal (TERM=dumb) cannot show a screen: outlive top --plain")
	}
	what, set, err := f.on.seen(ctx, f.home)
	if err != nil {
		return err
	}
	if _, err := askAll(ctx); err != nil && set == nil {
		return fail(exitFailure, "%w", err)
	}
	defer seeHome(&what, f.home)()
	c := collect.New(what)
	defer c.Close()
	if f.plain {
		return asFailure(printPlain(ctx, streams.out, c))
	}
	o := top.Options{
		Source: c, In: streams.in, Out: streams.out, Colour: os.Getenv("NO_COLOR") == "",
		ServerText: f.serverLines,
		AgentText:  agentLines,
	}
	if !f.readOnly {
		o.Control = controls{c, f.home, "in outlive top", set}
		if !f.on.fleet { // a fleet brings no terminals
			o.Attach = func(a overview.Agent) *exec.Cmd { return f.attachCommand(set, a) }
		}
	}
	return asFailure(top.Run(ctx, o))
}

// serverLines are the last lines of what a server has written; of one on another machine, what shows them.
func (f topFlags) serverLines(s overview.Server) (string, error) {
	switch {
	case s.Host != "" && f.on.fleet:
		return "outlive logs " + s.Key + " --fleet shows it", nil
	case s.Host != "":
		return "outlive logs " + s.Key + " --hosts " + s.Host + " shows it", nil
	}
	return collect.Tail(s.LogPath)
}

// agentLines are the last lines of what an agent has written; of one on another machine, what shows them there.
func agentLines(a overview.Agent) (string, error) {
	if a.Host != "" {
		return "on " + a.Host + ": outlive agent logs " + overview.There(a.Host, a.Key), nil
	}
	if a.Output == "" {
		return "", nil
	}
	text, err := agentText(a.Output)
	return collect.LastLines(text), err
}

// attachCommand joins an agent's terminal on the agent's machine. That is one of the set if it is not this one.
func (f topFlags) attachCommand(set *hosts.Set, a overview.Agent) (cmd *exec.Cmd) {
	if a.Host != "" {
		h, _ := set.Named(a.Host) // it is of the set, which has told of the agent
		cmd = set.Terminal(h, homeArgs([]string{"agent", "attach", overview.There(a.Host, a.Key)}, f.home))
	} else {
		self, err := os.Executable()
		if err != nil {
			self = os.Args[0]
		}
		cmd = exec.Command(self, homeArgs([]string{"agent", "attach", a.Key}, f.home)...)
	}
	cmd.Stderr = os.Stderr
	return cmd
}

func (c controls) RestartAgent(ctx context.Context, a overview.Agent) (string, error) {
	defer c.seen.LookSoon()
	if a.Host != "" {
		return c.there(ctx, a.Host, homeArgs([]string{"agent", "restart", overview.There(a.Host, a.Key)}, c.home)...)
	}
	o, err := lookOptions(c.home)
	if err != nil {
		return "", err
	}
	answer, err := (&requestFlags{home: c.home}).ask(ctx, o, monitor.UserRequest{Agent: a.Key, Verb: "restart"})
	return a.Name + ": " + answer, err
}

// printPlain prints everything as lines, once each machine has answered or its time is over.
func printPlain(ctx context.Context, w io.Writer, c *collect.Collector) error {
	out := logline.NewScreen(w)
	news, stop := c.Listen()
	defer stop()
	s := c.State()
	for slices.ContainsFunc(s.Hosts, func(h overview.Host) bool { return h.Health == overview.Busy }) {
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-time.After(250 * time.Millisecond):
		}
		s = c.State()
	}
	if _, err := fmt.Fprintf(out, "As of %s: ", s.At.Local().Format(time.TimeOnly)); err != nil {
		return err
	}
	for _, text := range terminal.Lines(s) {
		if _, err := fmt.Fprintln(out, text); err != nil {
			return err
		}
	}
	return nil
}
