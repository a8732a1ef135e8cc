package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// momentPatience is how long an upgrade waits for a quiet moment by default.
const momentPatience = time.Minute

// errUpgrading is returned to whoever wants an upgrade while one is under way.
var errUpgrading = errors.New("an upgrade is under way already")

func newUpgrade(io streams) *cobra.Command {
	var patience time.Duration
	var all bool
	cmd := &cobra.Command{
		Use:   "upgrade NAME | --all",
		Short: "Let a running outlive become the version on disk",
		Long: `Let the outlive in front of the server NAME become the version that is on disk now, where it was started from. Its
process id and its client stay. The server is started anew, as at "outlive restart", and told what the client has told it.
No call is lost or repeated: the upgrade waits until none is in flight, holding new ones back for at most 3 seconds at a
time, and up to 6 while the server ends, and they are answered afterwards. If no such moment comes (--timeout), it says so
and nothing has changed; neither does a new version that does not run, or does not understand the old one, change anything.
SIGUSR2 does the same.

A gateway that speaks HTTP becomes the new version in the same way: its address stays open, requests in flight are answered
first, those that come meanwhile wait, sessions go on, and streams end for their clients to open them again. All its
servers are started anew.

Where several servers have one name, say NAME@PID with the PID of its outlive. Not on Windows.

--all does so with every outlive that runs for this user on this machine, all at once, and says of each what has become of it.

EXIT STATUS
  0  the new version has taken over, everywhere with --all; or nothing runs there
  1  there is no such server, or one goes on with the version it had
  2  the name is ambiguous`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all {
				return takes(0, 0)(cmd, args)
			}
			return takes(1, 1)(cmd, args)
		},
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				return upgradeAll(cmd.Context(), io, patience)
			}
			instance, err := findInstance(args[0])
			if err != nil {
				return err
			}
			if instance.Server != "" {
				return fail(exitUsage, "upgrade %s: it is the gateway that has versions of outlive: outlive upgrade %s", args[0], instance.Name)
			}
			s, err := instance.Upgrade(cmd.Context(), patience)
			if err != nil {
				return fail(exitFailure, "upgrade %s: %w", args[0], err)
			}
			_, err = fmt.Fprintln(io.out, instance.Name+": "+programOf(s))
			return err
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every outlive of yours on this machine")
	cmd.Flags().DurationVar(&patience, "timeout", momentPatience, "how long to wait for a moment when no call is in flight")
	return cmd
}

// upgradeAll upgrades everything that runs, all at once, and tells of each.
func upgradeAll(ctx context.Context, io streams, patience time.Duration) error {
	all, err := askAll(ctx)
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	done := atOnce(all, func(r running) restartRecord {
		s, err := r.Upgrade(ctx, patience)
		if err != nil {
			return restartRecord{Name: r.Label(), Error: err.Error()}
		}
		return restartRecord{Name: r.Label(), Text: programOf(s)}
	})
	return telling{io: io, verb: "upgrade", missed: "go on with the version they had"}.tell(done, nil)
}

// programOf says which version is in front of what.
func programOf(s control.Status) string {
	text := fmt.Sprintf("outlive %s (PID %d)", s.Version, s.PID)
	if !s.Gateway() {
		text += fmt.Sprintf(", server PID %d", s.ServerPID)
	}
	return text
}

// errRemoteStays is why a run of a server at a URL is not upgraded in place.
var errRemoteStays = errors.New("not possible for a server at a URL: restart the client instead")

// image is this program in its process, until the one on disk takes its place.
type image struct {
	sinks    *sinks
	program  string // where it is on disk
	upgrades int    // how often that has happened in this process
	busy     atomic.Bool
	begun    time.Time // the upgrade that is under way
}

// newImage is called at the start. from is what the image before this one has left; nil: it is the first.
func newImage(k *sinks, from *legacy) (*image, error) {
	program, err := programPath()
	i := &image{sinks: k, program: program}
	if from != nil {
		i.upgrades = from.Upgrades
	}
	return i, err
}

// upgrade lets the program on disk take our place, if that says that it can. quiet waits for a moment without requests in flight, no
// longer than its context and wait, and calls become, or has it called. stays is why none is waited for; nil: it is. After an error,
// which is told, everything goes on. Any goroutine.
func (i *image) upgrade(ctx context.Context, wait time.Duration, stays error, quiet func(context.Context) error) error {
	if !i.busy.CompareAndSwap(false, true) {
		return errUpgrading
	}
	i.begun = time.Now()
	err := cmp.Or(stays, handoverPossible())
	if err == nil {
		err = tryProgram(ctx, i.program, os.Args[1:])
	}
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		err = quiet(ctx)
	}
	if err != nil {
		i.busy.Store(false)
		i.sinks.warn(event.UpgradeFailed, "Upgrade failed, this version goes on: "+err.Error(), slog.String(event.KeyReason, err.Error()))
	}
	return err
}

// become executes the program on disk in our place, and leaves it l and the descriptors of that. It returns only if that fails.
func (i *image) become(l *legacy, fds []int) error {
	i.sinks.flush()
	child.RestKeeper()
	l.PID, l.Version, l.Started, l.Begun, l.Upgrades = os.Getpid(), version(), i.sinks.start, i.begun, i.upgrades+1
	return execute(i.program, l, fds)
}

// tellUpgraded says in the new program's first words how it came here.
func (k *sinks) tellUpgraded(from *legacy) {
	took := time.Since(from.Begun).Milliseconds()
	k.say(event.Upgraded, fmt.Sprintf("Upgraded from outlive %s to %s in %dms", from.Version, version(), took),
		slog.String(event.KeyOldVersion, from.Version), slog.String(event.KeyNewVersion, version()), slog.Int64(event.KeyTookMS, took))
}
