package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/files/fileerror"
)

const agentAddLong = `Declare an agent in registry.yaml of the home, which is made when it is not there. Whatever else can be said of it (what is
expected, what is tried in which order, whom to tell) is written into that file by hand; a running monitor sees it at once.

CMD starts the agent anew. In it, and in --resume and --nudge, {session}, {preamble}, {phase} and {text} are filled in.
No shell is involved.

EXIT STATUS
  0  declared
  1  it is declared already, or the registry cannot be read or written
  2  a mistake in the command line, or nothing says what kind of agent it is`

// addFlags are the flags of `outlive agent add`.
type addFlags struct {
	home    string
	kind    string
	path    string
	resume  string
	nudge   string
	beat    time.Duration
	pidfile string
	env     []string // NAME=VALUE
	done    string
	limits  []string // CLASS=LIMIT
	term    bool
	// termSaid says that term was given.
	termSaid bool
}

func newAgentAdd(io streams) *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add NAME [flags] [-- CMD [ARG…]]",
		Short: "Declare an agent",
		Long:  agentAddLong,
		Example: "  outlive agent add shop --path ~/shop -- claude -p 'Read PLAN.md and do what is left of it'\n" +
			"  outlive agent add shop --kind codex --resume 'codex exec resume {session} {preamble}'\n" +
			"  outlive agent add nightly --env LANG=C --limit crashed=2/1h -- ./nightly.sh\n" +
			"  outlive agent add bot --done never -- ./bot.sh\n" +
			"  outlive agent add backup --kind command --beat 10m",
		Args: func(cmd *cobra.Command, args []string) error {
			if before := beforeDash(cmd, args); before != 1 {
				return fail(exitUsage, "want one NAME, and the command that starts the agent behind --: outlive agent add NAME -- CMD")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.termSaid = cmd.Flags().Changed("terminal")
			return f.run(cmd.Context(), io, args[0], args[1:])
		},
	}
	fl := flagsBeforeDash(cmd)
	fl.StringVar(&f.kind, "kind", "", "what it is: "+registry.KindNames(", ")+" (default: by CMD, or by what runs in the directory)")
	fl.StringVar(&f.path, "path", ".", "its directory")
	fl.StringVar(&f.resume, "resume", "", "`COMMAND` that goes on with a session, in one word: 'claude -p --resume {session} {preamble}'")
	fl.StringVar(&f.nudge, "nudge", "", "`COMMAND` that hands a text to a running session, such as 'tmux send-keys -t shop {text} Enter' or 'herdr agent prompt shop {text}'")
	fl.DurationVar(&f.beat, "beat", 0, "how often it beats (outlive heartbeat); after three times that it is missed")
	fl.StringVar(&f.pidfile, "pidfile", "", "`FILE` with its process number, relative to the directory")
	fl.StringArrayVar(&f.env, "env", nil, "`NAME=VALUE` that is added to its environment; may be given several times")
	fl.StringVar(&f.done, "done", "", "`HOW` it looks when its work is done: exit:0 (it ends with status 0), manifest (every phase of its manifest is complete), or never (it is not meant to end; default: a command, and a CLI that works on one prompt, exit:0)")
	fl.StringArrayVar(&f.limits, "limit", nil, "`CLASS=LIMIT`, how often it is started for one class of stalls, such as crashed=5/1h or startup_blocked=1/phase; may be given several times")
	fl.BoolVar(&f.term, "terminal", false, "it is started with a terminal that outlive agent attach joins; =false: without (default: CLIs that are worked with at one have it, such as claude without -p)")
	defineHome(fl, &f.home)
	return cmd
}

// beforeDash is how many arguments stand before "--".
func beforeDash(cmd *cobra.Command, args []string) int {
	if n := cmd.ArgsLenAtDash(); n >= 0 {
		return n
	}
	return len(args)
}

func (f *addFlags) run(ctx context.Context, io streams, name string, start []string) error {
	dir, err := realDir(f.path)
	if err != nil {
		return fail(exitUsage, "--path %s: %w", f.path, err)
	}
	resume, err := splitWords(f.resume)
	if err != nil {
		return fail(exitUsage, "--resume: %w", err)
	}
	nudge, err := splitWords(f.nudge)
	if err != nil {
		return fail(exitUsage, "--nudge: %w", err)
	}
	if f.beat < 0 {
		return fail(exitUsage, "--beat %s: must be above 0", f.beat)
	}
	more, err := f.settings()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	kind, err := f.kindOf(start, dir)
	if err != nil {
		return err
	}
	start, resume = f.patient(kind, start), f.patient(kind, resume)
	o, r, err := editRegistry(io, f.home, func(d *registry.Document) error {
		errs := []error{d.Add(name, kind, dir)}
		set := func(there bool, v any, key ...string) {
			if there {
				errs = append(errs, d.Set(name, v, key...))
			}
		}
		if errs[0] == nil {
			set(f.pidfile != "", f.pidfile, "match", "pidfile")
			set(len(start) > 0, start, "start", "cmd")
			set(len(resume) > 0, resume, "start", "resume")
			set(len(nudge) > 0, nudge, "start", "nudge")
			set(f.beat > 0, f.beat, "expect", "beat")
			set(f.termSaid, f.term, "start", "terminal")
			for _, s := range append(retrySettings(kind, len(start)+len(resume) > 0, f.env), more...) {
				set(true, s.value, s.key...)
			}
		}
		return errors.Join(errs...)
	})
	if errors.Is(err, registry.ErrExists) {
		return fail(exitFailure, "%w; change it in %s, or take it out: outlive agent remove %s%s", err, registryOf(o), name, homeFlag(o.Home))
	}
	if err != nil {
		return err
	}
	a, _ := r.Agent(name)
	return tellDeclared(ctx, io.out, o, r, a)
}

// agentSetting is one key of the declaration.
type agentSetting struct {
	key   []string
	value any
}

// settings are what --env, --done and --limit say.
func (f *addFlags) settings() (list []agentSetting, err error) {
	for _, given := range f.env {
		name, value, ok := strings.Cut(given, "=")
		if !ok {
			return nil, fmt.Errorf("--env %s: want NAME=VALUE", given)
		}
		if err := registry.ValidVariable(name); err != nil {
			return nil, fmt.Errorf("--env %s: %w", given, err)
		}
		list = append(list, agentSetting{[]string{"start", "env", name}, value})
	}
	switch f.done {
	case "":
	case "exit:0":
		list = append(list, agentSetting{[]string{"expect", "done", "exit"}, 0})
	case "manifest":
		list = append(list, agentSetting{[]string{"expect", "done", "manifest"}, "complete"})
	case "never":
		list = append(list, agentSetting{[]string{"expect", "done", "exit"}, "never"})
	default:
		return nil, fmt.Errorf("--done %s: want exit:0 (it ends with status 0), manifest (every phase of its manifest is complete) or never (it is not meant to end)", f.done)
	}
	for _, given := range f.limits {
		class, text, ok := strings.Cut(given, "=")
		if !ok {
			return nil, fmt.Errorf("--limit %s: want CLASS=LIMIT, such as crashed=5/1h", given)
		}
		if !slices.Contains(registry.Classes(), class) {
			return nil, fmt.Errorf("--limit %s: %q is not a class that can be limited: %s", given, class, fileerror.DidYouMean(class, registry.Classes(), nil))
		}
		limit, err := recovery.ParseBudget(text)
		if err != nil {
			return nil, fmt.Errorf("--limit %s: %w", given, err)
		}
		list = append(list, agentSetting{[]string{"budget", "per_class", class}, limit})
	}
	return list, nil
}

// realDir is a directory without links, as a process that works in it knows it.
func realDir(path string) (string, error) {
	path, err := expandHome(path)
	if err != nil {
		return "", err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return "", errors.Join(err, errors.New("it is not a directory"))
	}
	return path, nil
}

// kindOf is the kind that was given, or the one of the command, or of what runs in the directory.
func (f *addFlags) kindOf(start []string, dir string) (registry.Kind, error) {
	if f.kind != "" {
		kind := registry.Kind(f.kind)
		if !slices.Contains(registry.Kinds(), kind) {
			return "", fail(exitUsage, "--kind %s: want one of %s", f.kind, registry.KindNames(", "))
		}
		return kind, nil
	}
	if len(start) > 0 {
		if kind, ok := agentcli.Recognise(start); ok {
			return kind, nil
		}
		if cli := agentcli.Of(registry.Kind(nameOf(start))); cli.Kind != "" && !cli.Known() {
			return cli.Kind, nil
		}
		return registry.Command, nil
	}
	var kinds []string
	for _, p := range runningAgents() {
		if p.Dir == dir && !slices.Contains(kinds, string(p.Kind)) {
			kinds = append(kinds, string(p.Kind))
		}
	}
	switch {
	case len(kinds) == 1:
		return registry.Kind(kinds[0]), nil
	case len(kinds) > 1:
		return "", fail(exitUsage, "%s run in %s: say which with --kind", strings.Join(kinds, " and "), dir)
	case f.beat > 0 || f.pidfile != "":
		return registry.Command, nil
	}
	return "", fail(exitUsage, "nothing that is known runs in %s: say what the agent is (--kind %s), or how it is started (-- CMD)", dir, registry.KindNames("|"))
}

func newAgentRemove(io streams) *cobra.Command {
	return newEdit(io, "remove", "Take an agent out of the registry; it is left running", func(d *registry.Document, name string) error { return d.Remove(name) }, "not declared any more; if it runs, it goes on")
}

func newAgentPause(io streams) *cobra.Command {
	return newEdit(io, "pause", "Leave an agent alone until unpause: nothing is done about it, nobody is told", func(d *registry.Document, name string) error { return d.Set(name, true, "paused") }, "paused: nothing is done about it, and nobody is told")
}

func newAgentUnpause(io streams) *cobra.Command {
	return newEdit(io, "unpause", "Watch a paused agent again", func(d *registry.Document, name string) error { return d.Set(name, nil, "paused") }, "watched again")
}

// newEdit is a verb that changes the registry's entry of one agent, or of several.
func newEdit(io streams, verb, short string, change func(*registry.Document, string) error, done string) *cobra.Command {
	var home string
	cmd := &cobra.Command{
		Use:   verb + " NAME …",
		Short: short,
		Args:  takes(1, -1),
		RunE: func(_ *cobra.Command, args []string) error {
			o, r, err := editRegistry(io, home, func(d *registry.Document) error {
				for _, name := range args {
					if err := change(d, name); err != nil {
						return err
					}
				}
				return nil
			})
			if errors.Is(err, registry.ErrUnknown) {
				return fail(exitFailure, "%w; outlive agent list%s shows who is declared", err, homeFlag(o.Home))
			}
			if err != nil {
				return err
			}
			for _, name := range args {
				text := done
				if a, ok := r.Agent(name); ok && verb == "unpause" && a.Paused {
					text = "still paused: the registry's defaults say so"
				}
				fmt.Fprintf(io.out, "%s: %s\n", name, text)
			}
			return nil
		},
	}
	defineHome(cmd.Flags(), &home)
	return cmd
}
