package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

func newRestart(io streams) *cobra.Command {
	var which restartSet
	var reason string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "restart NAME | --all | --failed",
		Short: "Restart servers; return when the new ones are ready",
		Long: `Restart the server NAME and return when the new process is ready. The client behind it notices nothing.
A server behind a gateway is GATEWAY/SERVER, or just SERVER where nothing else is called so; all its processes are replaced.
Where several servers have one name, say NAME@PID with the PID of its outlive.

--all restarts every server that outlive keeps alive for this user on this machine, behind gateways, too, all at once. --failed
restarts those of them that do not run: paused after too many crashes, waiting for their next start, or unable to start.

EXIT STATUS
  0  every new process is ready, or nothing is to be restarted with --all or --failed
  1  no such server, or a new process did not become ready
  2  the name is ambiguous`,
		Args:              which.takes,
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			if which.many() {
				return which.restart(ctx, io, reason)
			}
			instance, err := findInstance(args[0])
			if err != nil {
				return err
			}
			result, err := instance.Restart(ctx, reason)
			if err != nil {
				return fail(exitFailure, "restart %s: %w", args[0], err)
			}
			name := instance.Name
			if instance.Server != "" {
				name += "/" + instance.Server
			}
			_, err = fmt.Fprintln(io.out, restarted(name, instance, result))
			return err
		},
	}
	cmd.Flags().BoolVar(&which.all, "all", false, "every server of yours on this machine")
	cmd.Flags().BoolVar(&which.failed, "failed", false, "every server of yours that does not run")
	cmd.MarkFlagsMutuallyExclusive("all", "failed")
	cmd.Flags().StringVar(&reason, "reason", "outlive restart", "why, for the audit log")
	cmd.Flags().DurationVar(&patience, "timeout", 3*time.Minute, "how long to wait for the new process")
	return cmd
}

// restartSet says that many servers are meant.
type restartSet struct{ all, failed bool }

func (w *restartSet) many() bool { return w.all || w.failed }

// takes is one name, or none where many are meant.
func (w *restartSet) takes(cmd *cobra.Command, args []string) error {
	if w.many() {
		return takes(0, 0)(cmd, args)
	}
	return takes(1, 1)(cmd, args)
}

// restart restarts all that are meant at once, and tells of each.
func (w *restartSet) restart(ctx context.Context, io streams, reason string) error {
	running, err := askAll(ctx)
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	var meant []control.Instance
	for _, r := range running {
		if !r.status.Gateway() && (w.all || down(r.status.State)) {
			meant = append(meant, r.Instance)
		}
		for _, s := range r.status.Servers {
			if w.all || down(overview.StateOf(s.ServerStatus)) {
				meant = append(meant, r.of(s.Name))
			}
		}
	}
	if len(meant) == 0 {
		_, err := fmt.Fprintln(io.out, "There is nothing to restart.")
		return err
	}
	bad := tellEach(io, "restart", meant, func(i control.Instance) (string, error) {
		result, err := i.Restart(ctx, reason)
		return restarted(i.Label(), i, result), err
	})
	if bad > 0 {
		return fail(exitFailure, "%d of %d servers did not become ready", bad, len(meant))
	}
	return nil
}

// tellEach does something with all instances at once, and then says of each what has become of it. bad is how many
// failed.
func tellEach(io streams, verb string, all []control.Instance, do func(control.Instance) (string, error)) (bad int) {
	texts, errs := make([]string, len(all)), make([]error, len(all))
	var asked sync.WaitGroup
	for n, i := range all {
		asked.Go(func() { texts[n], errs[n] = do(i) })
	}
	asked.Wait()
	for n, i := range all {
		if errs[n] != nil {
			bad++
			fmt.Fprintf(io.err, "outlive: %s %s: %v\n", verb, i.Label(), errs[n])
			continue
		}
		fmt.Fprintln(io.out, texts[n])
	}
	return bad
}

// down reports whether a state, or a summary of several, is of what does not run although it should.
func down(state string) bool {
	return slices.ContainsFunc([]string{"backoff", "failed", "unusable"}, func(word string) bool { return strings.Contains(state, word) })
}

// restarted tells of a restart that went well, of what is shown as name.
func restarted(name string, i control.Instance, r control.Result) string {
	switch {
	case i.Server != "" && r.Processes == 0:
		return name + ": nothing runs; it starts when it is needed"
	case r.Processes > 1:
		return fmt.Sprintf("%s: %d processes ready after %d ms", name, r.Processes, r.TookMS)
	case r.ServerPID == 0:
		return fmt.Sprintf("%s: connected again after %d ms", name, r.TookMS)
	case r.Unasked:
		return fmt.Sprintf("%s: started after %d ms (PID %d, restart #%d); no client has spoken to it yet", name, r.TookMS, r.ServerPID, r.Generation)
	}
	return fmt.Sprintf("%s: ready after %d ms (PID %d, restart #%d)", name, r.TookMS, r.ServerPID, r.Generation)
}
