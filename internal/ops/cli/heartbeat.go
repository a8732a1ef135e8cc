package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/heartbeat"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/agents/recovery"
	"github.com/outlive-mcp/outlive/internal/agents/registry"
	"github.com/outlive-mcp/outlive/internal/files/batchfile"
)

const heartbeatLong = `Leave a sign of life of agent NAME (default: $OUTLIVE_AGENT) for outlive monitor, which need not be running. It is what the
agent says of itself, and outweighs whatever is only concluded.

With CMD, run it and beat every 30 seconds while it runs; its exit status is passed on. It is said to be done when it
ends with 0.

STATES
  working   (default) does its work        stuck    cannot go on by itself: a human is told
  waiting   for a human                    exiting  is about to end on purpose
  idle      has nothing to do              done     has finished what it was for

EXIT STATUS
  0    left; with CMD: CMD's own status, 128+n after signal n
  1    it could not be left
  2    a mistake in the command line
  126  CMD cannot be executed
  127  CMD was not found`

var heartbeatStates = []heartbeat.State{
	heartbeat.Working, heartbeat.Waiting, heartbeat.Idle, heartbeat.Stuck, heartbeat.Exiting, heartbeat.Done,
}

// beatFlags are the flags of `outlive heartbeat`.
type beatFlags struct {
	home     string
	state    string
	phase    int
	note     string
	progress string
	next     time.Duration
	pid      int
}

func newHeartbeat(io streams) *cobra.Command {
	var f beatFlags
	cmd := &cobra.Command{
		Use:         "heartbeat [NAME] [flags] [-- CMD [ARG…]]",
		Annotations: map[string]string{keepsAlive: "yes"},
		Short:       "Leave a sign of life of an agent, or of a command while it runs",
		Long:        heartbeatLong,
		Example: "  outlive heartbeat shop --phase 3 --progress 4/9 --note 'tests of the cart'\n" +
			"  outlive heartbeat shop --next 20m            # a long step: nothing is missed until then\n" +
			"  outlive heartbeat nightly -- ./nightly.sh",
		Args: func(cmd *cobra.Command, args []string) error {
			if beforeDash(cmd, args) > 1 {
				return fail(exitUsage, "want at most one NAME; write a command behind --: outlive heartbeat NAME -- CMD")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			n := beforeDash(cmd, args)
			o, err := f.observation(cmp.Or(strings.Join(args[:n], ""), os.Getenv("OUTLIVE_AGENT")), cmd.Flags().Changed("phase"))
			if err != nil {
				return &exitError{exitUsage, err}
			}
			home, err := agentsHome(f.home)
			if err != nil {
				return &exitError{exitUsage, err}
			}
			warnUnwatched(io, home, o.Agent, "--beat 1m")
			if len(args) > n {
				return beatWhile(io, monitor.BeatDir(home), o, args[n:])
			}
			return beat(monitor.BeatDir(home), o)
		},
	}
	fl := flagsBeforeDash(cmd)
	fl.StringVar(&f.state, "state", string(heartbeat.Working), "what the agent does, see above")
	fl.IntVar(&f.phase, "phase", 0, "number of the phase it is in")
	fl.StringVar(&f.note, "note", "", "a line for people")
	fl.StringVar(&f.progress, "progress", "", "how far it is: `DONE/TOTAL`, or DONE")
	fl.DurationVar(&f.next, "next", 0, "the next sign may take so long; more than "+recovery.FormatDuration(heartbeat.LongestPromise)+" counts as that")
	fl.IntVar(&f.pid, "pid", 0, "the agent's process, whose end is noticed then: $$ in a script")
	defineHome(fl, &f.home)
	return cmd
}

// observation is what the flags say.
func (f *beatFlags) observation(name string, phased bool) (heartbeat.Observation, error) {
	o := heartbeat.Observation{Agent: name, State: heartbeat.State(f.state), Note: f.note, Next: min(f.next, heartbeat.LongestPromise)}
	if name == "" {
		return o, errors.New("whose? Write outlive heartbeat NAME, or set OUTLIVE_AGENT")
	}
	if err := heartbeat.ValidName(name); err != nil {
		return o, err
	}
	if !slices.Contains(heartbeatStates, o.State) {
		return o, fmt.Errorf("--state %q: want working, waiting, idle, stuck, exiting or done", f.state)
	}
	if phased {
		if f.phase < 0 {
			return o, fmt.Errorf("--phase %d: must not be negative", f.phase)
		}
		o.Phase = &f.phase
	}
	if f.next < 0 {
		return o, fmt.Errorf("--next %s: want more than 0", f.next)
	}
	if err := parseProgress(f.progress, &o.Progress); err != nil {
		return o, err
	}
	if f.pid != 0 {
		p, err := process.System{}.Look(f.pid)
		if err != nil {
			return o, fmt.Errorf("--pid %d: %w", f.pid, err)
		}
		o.PID, o.Start = p.PID, p.Start
	}
	return o, nil
}

// parseProgress reads 4/9 or 4.
func parseProgress(text string, p *heartbeat.Progress) error {
	if text == "" {
		return nil
	}
	done, total, both := strings.Cut(text, "/")
	d, errDone := strconv.ParseUint(done, 10, 31)
	t, errTotal := strconv.ParseUint(cmp.Or(total, "0"), 10, 31)
	if errDone != nil || errTotal != nil || both && (total == "" || d > t) {
		return fmt.Errorf("--progress %q: want DONE/TOTAL such as 4/9, or DONE", text)
	}
	p.Done, p.Total = int(d), int(t)
	return nil
}

func beat(dir string, o heartbeat.Observation) error {
	o.Wall = time.Now()
	return asFailure(heartbeat.Write(dir, o))
}

// warnUnwatched warns that no monitor watches an agent: a typing mistake in its name would otherwise be noticed late.
// how declares it, behind the name.
func warnUnwatched(io streams, home, name, how string) {
	path := registryOf(agentsOptions(home))
	user, _ := os.UserHomeDir() // without it ~/ is a mistake of the registry, which is reported elsewhere
	r, err := registry.Read(path, registry.Options{Home: user})
	declare := "outlive agent add " + name + homeFlag(home) + " " + how
	switch {
	case errors.Is(err, os.ErrNotExist):
		fmt.Fprintf(io.err, "outlive: warning: %s is not watched: %s is not there; %s\n", name, path, declare)
	case err != nil:
	case r.Version == 1:
		fmt.Fprintf(io.err, "outlive: warning: agents of the PIV supervisor's registry beat into %s itself\n", path)
	default:
		if _, ok := r.Agent(name); !ok {
			fmt.Fprintf(io.err, "outlive: warning: %s is not watched: %s does not declare it; %s\n", name, path, declare)
		}
	}
}

// beatEvery is the heartbeat interval of a running command.
const beatEvery = 30 * time.Second

// beatWhile runs a command with our own streams, and beats for it until it ends.
func beatWhile(io streams, dir string, o heartbeat.Observation, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.out, io.err
	cmd.Env = append(os.Environ(), "OUTLIVE_AGENT="+o.Agent)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, append(passedOn, os.Interrupt)...)
	defer signal.Stop(signals)
	err := batchfile.Prepare(cmd)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		code := exitNotExecutable
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			code = exitNotFound
		}
		return &exitError{code, err}
	}
	if p, err := (process.System{}).Look(cmd.Process.Pid); err == nil {
		o.PID, o.Start = p.PID, p.Start
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	lost := false
	err = beatUntil(ended, signals, func() { lost = tellBeat(io, dir, o, lost) }, func(sig os.Signal) {
		_ = cmd.Process.Signal(sig) // it may have ended by now
	})
	code, how := endOf(err)
	o.State, o.Note, o.Next = heartbeat.Done, how, 0
	if code != 0 {
		o.State = "" // neither stopped on purpose nor done: the monitor judges it
	}
	tellBeat(io, dir, o, lost)
	return exitWith(code)
}

// beatUntil beats at once and every [beatEvery] until the command has ended, and passes signals on to it.
func beatUntil(ended <-chan error, signals <-chan os.Signal, beat func(), pass func(os.Signal)) error {
	beat()
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			beat()
		case sig := <-signals:
			if sig != os.Interrupt { // the terminal sends it to the command, too, and a second one would have another meaning
				pass(sig)
			}
		case err := <-ended:
			return err
		}
	}
}

// tellBeat sends a heartbeat. A failure is reported once, and does not end the command.
func tellBeat(io streams, dir string, o heartbeat.Observation, lost bool) bool {
	err := beat(dir, o)
	if err != nil && !lost {
		fmt.Fprintln(io.err, "outlive: warning:", err)
	}
	return err != nil
}

// endOf is the exit status of a command, as a shell has it, and the same in words.
func endOf(err error) (code int, how string) {
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return 0, "ended with exit status 0"
	case !ok:
		return exitFailure, "its end could not be seen: " + err.Error()
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return 128 + int(s.Signal()), "ended by signal: " + s.Signal().String()
	}
	return exit.ExitCode(), fmt.Sprintf("ended with exit status %d", exit.ExitCode())
}

// exitWith leaves with a status and says nothing.
func exitWith(code int) error {
	if code == 0 {
		return nil
	}
	return &exitError{code: code}
}
