package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

// askWait is how long the monitor has to do what it is asked for.
const askWait = 15 * time.Second

const askExit = `

EXIT STATUS
  0  the monitor has done it
  1  it could not, or no monitor runs: then it is done once one does
  2  a mistake in the command line`

// requestFlags are the flags of the verbs that ask the monitor for something.
type requestFlags struct {
	home string
	by   string
}

func (f *requestFlags) define(fl *pflag.FlagSet) {
	fl.SortFlags = false
	fl.StringVar(&f.by, "by", "", "who wants it, for the record (default: your user name)")
	defineHome(fl, &f.home)
}

// requestVerb is a verb that asks the monitor for something about one agent.
type requestVerb struct {
	use, short, long string
	verb             string // of [monitor.UserRequest]
}

var wishVerbs = []requestVerb{
	{
		use: "start NAME", short: "Start an agent that does not run", verb: "start",
		long: "Run the agent's start command in its directory, and not in your terminal. A CLI that people work with at one, or any with start: {terminal: true}, gets its own (not on Windows), which outlive agent attach NAME joins; outlive agent logs NAME shows the output of the others. One that runs is left alone. Budgets are for the monitor's own acts: this works whatever is used up.",
	},
	{
		use: "restart NAME", short: "End an agent and start it anew", verb: "restart",
		long: "End the agent with everything it has started, and run its start command. Also one that is stopped. Budgets are for the monitor's own acts: this works whatever is used up.",
	},
	{
		use: "resume NAME", short: "End an agent and go on with its session", verb: "resume",
		long: "End the agent with everything it has started, and run the command that goes on with its last session. To have a paused agent watched again: outlive agent unpause.",
	},
	{
		use: "stop NAME", short: "End an agent; nothing is done about it until it runs again", verb: "stop",
		long: "End the agent with everything it has started. Nothing is done about it, and nobody is told, until it was started again.",
	},
	{
		use: "say NAME TEXT …", short: "Give a running agent a text", verb: "say",
		long: "Give the agent's running session a text, by the command that is declared for it.",
	},
	{
		use: "budget-reset NAME", short: "Give an agent all its restarts back", verb: "reset",
		long: "Forget what was done about the agent: its budgets are full again, a crash loop counts from the beginning, and the monitor goes on helping.",
	},
}

// lacks says which command the declaration of an agent lacks for a verb; "": none.
func lacks(verb string, a registry.Agent) string {
	command, what := a.Start.Cmd, "start.cmd, the command that starts it"
	switch verb {
	case "resume":
		command, what = a.Start.Resume, "start.resume, the command that goes on with a session"
	case "say":
		command, what = a.Start.Nudge, "start.nudge, the command that hands it a text"
	case "stop", "reset":
		return ""
	}
	if len(command) > 0 {
		return ""
	}
	return what
}

func newAgentWishes(io streams) []*cobra.Command {
	var cmds []*cobra.Command
	for _, v := range wishVerbs {
		var f requestFlags
		var on hostFlags
		args := takes(1, 1)
		if v.verb == "say" {
			args = takes(2, -1)
		}
		cmd := &cobra.Command{
			Use: v.use, Short: v.short, Long: v.long + askExit, Args: args,
			RunE: func(cmd *cobra.Command, args []string) error {
				if on.given() {
					return f.restartThere(cmd.Context(), io, &on, args[0])
				}
				return f.request(cmd.Context(), io, v, args)
			},
		}
		f.define(cmd.Flags())
		if v.verb == "restart" {
			on.define(cmd)
			cmd.Annotations = map[string]string{forOthers: "home"}
		}
		cmds = append(cmds, cmd)
	}
	return cmds
}

// request sends a request about an agent whose declaration allows it.
func (f *requestFlags) request(ctx context.Context, io streams, v requestVerb, args []string) error {
	o, r, err := readRegistry(f.home)
	if err != nil {
		return err
	}
	name := args[0]
	a, err := declaredAgent(o, r, name)
	if err != nil {
		return err
	}
	supervisors := r.Version == 1 // whose agents are all started the same way
	if missing := lacks(v.verb, a); missing != "" && (!supervisors || v.verb != "restart" && v.verb != "start") {
		if supervisors {
			return fail(exitFailure, "%s: agents of the PIV supervisor's registry have no %s", name, missing)
		}
		return fail(exitFailure, "%s: %s lacks %s", name, registryOf(o), missing)
	}
	answer, err := f.ask(ctx, o, monitor.UserRequest{Agent: name, Verb: v.verb, Text: strings.Join(args[1:], " ")})
	if err != nil {
		return fail(exitFailure, "%s: %w", name, err)
	}
	fmt.Fprintf(io.out, "%s: %s\n", name, logline.Printable(answer))
	return nil
}

// ask sends a request to the monitor of a home and returns the answer.
func (f *requestFlags) ask(ctx context.Context, o monitor.Options, w monitor.UserRequest) (string, error) {
	w.By = cmp.Or(f.by, askedBy(), userName())
	if asker := askedBy(); f.by != "" && asker != "" {
		name, _, _ := strings.Cut(f.by, "@")
		w.By = name + "@" + asker // which its hub vouches for, unlike the name
	}
	ctx, cancel := context.WithTimeout(ctx, askWait)
	defer cancel()
	answer, err := monitor.Ask(ctx, o, w)
	switch {
	case errors.Is(err, monitor.ErrNobody):
		return "", fmt.Errorf("%w; start it: outlive monitor%s", err, homeFlag(o.Home))
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("the monitor has not handled the request within %s; it does so when it can", askWait)
	case err != nil:
		return "", err
	case refused(answer):
		if answer == "failed" {
			answer = "it failed; improvement-log.md in " + o.Home + " says why"
		}
		return "", errors.New(logline.Printable(answer))
	}
	return answer, nil
}

// refused reports an answer of the monitor that says that nothing was done.
func refused(answer string) bool {
	for _, start := range []string{"failed", "interrupted", "abandoned", "nothing is done", "no such", "no way is known", "That is not possible", "This is not known", "already resolved"} {
		if strings.HasPrefix(answer, start) {
			return true
		}
	}
	return strings.Contains(answer, "cannot be done")
}

func userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(os.Getenv("USER"), os.Getenv("USERNAME"), "a user")
}
