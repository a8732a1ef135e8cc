package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/spf13/pflag"

	"github.com/outlive-mcp/outlive/internal/agents/agentcli"
	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/keep/backoff"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// errSharedStays is why a run with a shared server cannot be upgraded in place.
var errSharedStays = errors.New("not possible with --shared yet: restart the client instead")

// rejoin is the time between two attempts to reach the daemon. Each attempt starts the daemon if it has ended.
const rejoin = 250 * time.Millisecond

// share adapts the settings for a run whose server belongs to the daemon. The settings of the server go to the
// daemon; those of the client, and of calls when the daemon has ended, are used here.
func (f *runFlags) share(s *settings, fl *pflag.FlagSet) error {
	if err := sharingPossible(); err != nil {
		return fail(exitUsage, "--shared: %w", err)
	}
	if s.remote != nil {
		return fail(exitUsage, "--shared is for a command that outlive starts: a server at a URL is shared already")
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return fail(exitFailure, "working directory: %w", err)
	}
	s.share = &sharing.Request{Name: s.backend.Name, PID: os.Getpid(), Command: s.backend.Command, Executable: s.executable, Dir: dir,
		Env: withoutVars(os.Environ(), append(agentcli.SessionVariables(), handoverVar, sharedIdleVar)), Settings: f.given(fl)}
	s.watch.Globs, s.watch.Auto = nil, nil
	o := &s.backend
	o.Elsewhere, o.NoTools, o.NoBridge = true, true, true
	o.Lazy, o.IdleFor, o.Replays, o.Limits = false, 0, nil, backend.Limits{}
	o.Supervise.Standby, o.Supervise.Exits.Endless, o.Health.CallTimeout = 0, true, 0
	// The daemon determines the server's era, and keeps the client's calls alive.
	o.ProbeSilence, o.ProbePatience = backend.RemoteProbePatience+o.Supervise.StartTimeout, backend.RemoteProbePatience+o.Supervise.StartTimeout
	o.CallPatience = 0
	p := &o.Supervise.Backoff
	p.MaxRestarts, p.FirstAtOnce, p.Tiers, p.Jitter = 0, true, []backoff.Tier{{Delay: rejoin}}, 0
	s.known = knowledgeFile(append([]string{"shared"}, o.Command...), s.executable, s.dir, nil)
	o.Known = loadKnowledge(s.known)
	return nil
}

// given returns the server's settings that were given, in the order of the table.
func (f *runFlags) given(fl *pflag.FlagSet) (all []sharing.Setting) {
	for _, s := range f.table() {
		flag := fl.Lookup(string(s.name))
		if s.own && s.name != "no-tools" || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		all = append(all, sharing.Setting{Name: string(s.name), Values: values})
	}
	return all
}

// sharedSocket is where the daemon of this user listens.
func sharedSocket() string { return control.PathIn(filepath.Join(stateDir(), "shared"), "socket") }

// daemonPatience is how long a daemon may take to start.
const daemonPatience = 10 * time.Second

// daemonLook is how often to check whether another process has given a lock back.
const daemonLook = 10 * time.Millisecond

// dialDaemon connects to this user's daemon of shared servers, and starts it if there is none, as one process only does at a time.
func dialDaemon(ctx context.Context) (net.Conn, error) {
	path := sharedSocket()
	if conn, err := control.Dial(ctx, path); err == nil || errors.Is(err, control.ErrForeign) {
		return conn, err
	}
	const what = "start the daemon of shared servers: %w"
	if err := control.MakeDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf(what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
	defer cancel()
	unlock, err := lockStart(ctx, path)
	if err != nil {
		return nil, fmt.Errorf(what, err)
	}
	defer unlock()
	if conn, err := control.Dial(ctx, path); err == nil {
		return conn, nil // another process has started it
	}
	if err := startDaemon(ctx); err != nil {
		return nil, fmt.Errorf(what, err)
	}
	return control.Dial(ctx, path)
}

// lockStart keeps others from starting a daemon at a socket, or from renewing a grant.
func lockStart(ctx context.Context, path string) (unlock func(), err error) {
	lock := flock.New(path+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, daemonLook); err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil // the system releases it in any case
}

// printShared prints, for each shared server, the runs that use it, and the reasons why other servers of the same
// command are separate.
func printShared(w io.Writer, s control.Status) {
	for _, server := range s.Servers {
		name := logline.Printable(s.Name + "/" + server.Name)
		if len(server.Runs) > 0 {
			var runs []string
			for _, r := range server.Runs {
				runs = append(runs, fmt.Sprintf("%s@%d", logline.Printable(r.Name), r.PID))
			}
			fmt.Fprintf(w, "%s: used by %s\n", name, strings.Join(runs, ", "))
		}
		for _, l := range server.Links {
			if l.Apart != "" && l.ServerPID != 0 {
				fmt.Fprintf(w, "%s: process %d is for %s only: %s\n", name, l.ServerPID, logline.Printable(cmp.Or(l.Client, "its clients")), l.Apart)
			}
		}
		for _, a := range server.Apart {
			if a.Server > server.Name { // once for each pair
				fmt.Fprintf(w, "%s: not shared with %s, because they differ in %s\n", name, logline.Printable(s.Name+"/"+a.Server),
					logline.Printable(strings.Join(a.By, ", ")))
			}
		}
	}
}
