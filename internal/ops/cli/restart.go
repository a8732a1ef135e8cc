package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const restartLong = `Restart the server NAME and return when the new process is ready. The client behind it notices nothing.
A server behind a gateway is GATEWAY/SERVER, or just SERVER where nothing else is called so; all its processes are replaced.
GATEWAY alone, if it speaks HTTP, is the gateway itself: it reads its whole configuration and starts its servers anew, in the
same process and with the same address; sessions go on, as at "outlive upgrade". One that was started with a command and no file
is called like its only server, and that is restarted.
Where several servers have one name, say NAME@PID with the PID of its outlive.

--all restarts every server that outlive keeps alive for this user on this machine, behind gateways, too, all at once. --failed
restarts those of them that do not run: paused after too many crashes, waiting for their next start, or unable to start.

EXIT STATUS
  0  every new process is ready, or nothing is to be restarted with --all or --failed
  1  no such server, a new process did not become ready, or a host did not answer
  2  the name is ambiguous`

func newRestart(io streams) *cobra.Command {
	var which restartSet
	var reason string
	var patience time.Duration
	var asJSON bool
	var on hostFlags
	cmd := &cobra.Command{
		Use:               "restart NAME | --all | --failed",
		Short:             "Restart servers, or a gateway; return when the new ones are ready",
		Long:              restartLong,
		Args:              which.takes,
		Annotations:       map[string]string{forOthers: "json reason timeout all failed"},
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			o := restartOrder{telling: telling{io, "restart", "servers did not become ready", asJSON}, reason: reason, patience: patience}
			switch {
			case on.given() && which.many():
				set, err := on.set(cmd.Context())
				if err != nil {
					return err
				}
				return cmp.Or(restartOn(cmd.Context(), o, set, which.flag()), whole(set))
			case on.given():
				set, name, err := on.serverThere(cmd.Context(), io, args[0])
				if err != nil {
					return err
				}
				return restartOn(cmd.Context(), o, set, name)
			}
			if which.many() {
				ctx, cancel := context.WithTimeout(cmd.Context(), patience)
				defer cancel()
				return o.tell(which.restart(ctx, reason))
			}
			instance, err := findInstance(args[0])
			if _, gone := errors.AsType[*notRunning](err); gone {
				return fail(exitFailure, "%w (an agent: outlive agent restart)", err)
			}
			if err != nil {
				return err
			}
			return o.one(cmd.Context(), args[0], instance)
		},
	}
	cmd.Flags().BoolVar(&which.all, "all", false, "every server of yours on this machine")
	cmd.Flags().BoolVar(&which.failed, "failed", false, "every server of yours that does not run")
	cmd.MarkFlagsMutuallyExclusive("all", "failed")
	cmd.Flags().StringVar(&reason, "reason", "outlive restart", "why, for the audit log")
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a JSON array; with --hosts an object for each host")
	cmd.Flags().DurationVar(&patience, "timeout", 3*time.Minute, "how long to wait for the new process")
	on.define(cmd)
	return cmd
}

// startsAnew reports whether restarting what has this status means the gateway itself: it has a configuration that it reads
// when it starts, and an address that stays. One that is called like its only server is asked to restart that.
func startsAnew(s control.Status) bool {
	return s.Gateway() && s.URL != "" && !slices.Contains(s.ServerNames(), s.Name)
}

// restartRecord is what has become of one server, for programs. Its names are stable.
type restartRecord struct {
	Name       string `json:"name"`
	Text       string `json:"text,omitempty"`  // what was done, in words
	Error      string `json:"error,omitempty"` // why it was not
	TookMS     int64  `json:"took_ms,omitempty"`
	ServerPID  int    `json:"server_pid,omitempty"`
	Generation int    `json:"generation,omitempty"`
	Processes  int    `json:"processes,omitempty"`
}

// restartOrder is how a restart is done and told.
type restartOrder struct {
	telling
	reason   string
	patience time.Duration
}

// telling is how it is told what has become of servers.
type telling struct {
	io     streams
	verb   string
	missed string // what so many of them are that it was not done to
	asJSON bool
}

// one restarts what a person calls name. A gateway says by itself when its time is over: it must not be left before.
func (o restartOrder) one(ctx context.Context, name string, i control.Instance) error {
	patient, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	var r restartRecord
	var err error
	s, asked := i.Status(patient)
	if asked == nil && i.Server == "" && startsAnew(s) {
		r, err = restartGateway(ctx, i, o.patience)
	} else {
		meant := i
		if names := s.ServerNames(); i.Server == "" && s.Gateway() && len(names) == 1 {
			meant.Server = names[0] // what may be asleep, unlike a run's
		}
		r, err = restartOne(patient, meant, o.reason)
		r.Name = i.Name
		if i.Server != "" {
			r.Name += "/" + i.Server
		}
	}
	if err != nil && !o.asJSON {
		return fail(exitFailure, "restart %s: %w", name, err)
	}
	return o.tell([]restartRecord{r}, nil)
}

// tell tells of each server.
func (o telling) tell(list []restartRecord, err error) error {
	if err != nil {
		return err
	}
	if o.asJSON {
		err = encodeJSON(o.io.out, list)
	} else if len(list) == 0 {
		_, err = fmt.Fprintf(o.io.out, "There is nothing to %s.\n", o.verb)
	}
	bad := 0
	for _, r := range list {
		switch {
		case r.Error != "":
			bad++
			fmt.Fprintf(logline.NewScreen(o.io.err), "outlive: %s %s: %s\n", o.verb, r.Name, r.Error)
		case !o.asJSON:
			_, err = fmt.Fprintln(o.io.out, r.Name+": "+r.Text)
		}
	}
	if bad > 0 {
		return fail(exitFailure, "%d of %d %s", bad, len(list), o.missed)
	}
	return err
}

// atOnce does the same to many at once, and returns what has become of each.
func atOnce[T any](many []T, do func(T) restartRecord) []restartRecord {
	done := make([]restartRecord, len(many))
	var asked sync.WaitGroup
	for n, one := range many {
		asked.Go(func() { done[n] = do(one) })
	}
	asked.Wait()
	return done
}

// restartOne restarts one server.
func restartOne(ctx context.Context, i control.Instance, reason string) (restartRecord, error) {
	result, err := i.Restart(ctx, control.Order{Reason: reason})
	r := restartRecord{Name: i.Label(), TookMS: result.TookMS, ServerPID: result.ServerPID, Generation: result.Generation, Processes: result.Processes}
	if err != nil {
		r.Error = err.Error()
		return r, err
	}
	r.Text = restarted(i, result)
	return r, nil
}

// restartGateway has a gateway start anew in its process, as at an upgrade.
func restartGateway(ctx context.Context, i control.Instance, patience time.Duration) (restartRecord, error) {
	s, err := i.Upgrade(ctx, patience)
	if err != nil {
		return restartRecord{Name: i.Name, Error: err.Error()}, err
	}
	return restartRecord{Name: i.Name, Text: fmt.Sprintf("started anew with %s (PID %d)", s.Config, s.PID)}, nil
}

// restartSet says that many servers are meant.
type restartSet struct{ all, failed bool }

func (w *restartSet) many() bool { return w.all || w.failed }

// takes is one name, or none where many are meant.
func (w *restartSet) takes(cmd *cobra.Command, args []string) error {
	if w.many() {
		return takes(0, 0)(cmd, args)
	}
	return takesRunning(cmd, args)
}

// flag is what says so on a command line.
func (w *restartSet) flag() string {
	if w.all {
		return "--all"
	}
	return "--failed"
}

// restart restarts all that are meant at once.
func (w *restartSet) restart(ctx context.Context, reason string) ([]restartRecord, error) {
	running, err := askAll(ctx)
	if err != nil {
		return nil, fail(exitFailure, "%w", err)
	}
	meant, list := w.among(running)
	return append(list, atOnce(meant, func(i control.Instance) restartRecord {
		r, _ := restartOne(ctx, i, reason) // the record has the error
		return r
	})...), nil
}

// among returns which of all that run are meant, and a record of each that gives no answer. What runs share is one server: it is
// meant once, at its daemon.
func (w *restartSet) among(all []running) (meant []control.Instance, list []restartRecord) {
	list = []restartRecord{} // JSON has a list, also of none
	atDaemon := map[int]bool{}
	for _, r := range all {
		for _, s := range r.status.Servers {
			for _, run := range s.Runs {
				atDaemon[run.PID] = true
			}
		}
	}
	for _, r := range all {
		if r.status.State == noAnswer && !w.all {
			list = append(list, restartRecord{Name: r.Label(), Error: fmt.Sprintf("no answer within %s: whether it is to be restarted is not known; outlive restart %s", askPatience, r.Label())})
			continue
		}
		if !r.onlyHas() && !atDaemon[r.PID] && (w.all || down(r.status.State)) {
			meant = append(meant, r.Instance)
		}
		for _, s := range r.status.Servers {
			if w.all || down(overview.StateOf(s.ServerStatus)) {
				meant = append(meant, r.of(s.Name))
			}
		}
	}
	return meant, list
}

// down reports whether a state, or a summary of several, is of what does not run although it should.
func down(state string) bool {
	return slices.ContainsFunc([]string{"backoff", "failed", "unusable"}, func(word string) bool { return strings.Contains(state, word) })
}

// restarted tells of a restart that went well.
func restarted(i control.Instance, r control.Result) string {
	switch {
	case i.Server != "" && r.Processes == 0:
		return "nothing runs; it starts when it is needed"
	case r.Processes > 1:
		return fmt.Sprintf("%d processes ready after %d ms", r.Processes, r.TookMS)
	case r.ServerPID == 0:
		return fmt.Sprintf("connected again after %d ms", r.TookMS)
	case r.Unasked:
		return fmt.Sprintf("started after %d ms (PID %d, restart #%d); no client has spoken to it yet", r.TookMS, r.ServerPID, r.Generation)
	}
	return fmt.Sprintf("ready after %d ms (PID %d, restart #%d)", r.TookMS, r.ServerPID, r.Generation)
}
