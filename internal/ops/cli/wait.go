package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// waitEvery is how often it is looked again. What is waited for may not run yet, so there is nobody who could tell.
const waitEvery = 100 * time.Millisecond

func newWait() *cobra.Command {
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "wait NAME",
		Short: "Return when a server is ready, or say why it cannot become so",
		Long: `Return when the server NAME is ready, for scripts that start something and go on when it works. It need not run yet. One that
sleeps until it is needed counts as ready. A server behind a gateway is GATEWAY/SERVER, or just SERVER where nothing else is called so;
of several processes one has to be ready. A gateway itself is ready when it takes clients. Where several servers have one name, say
NAME@PID with the PID of its outlive.

EXIT STATUS
  0  it is ready
  1  it is not, and stderr says why: the time is over, or it is not tried again in time
  2  the name is ambiguous`,
		Args:              takes(1, 1),
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			w, err := parseWanted(args[0])
			if err != nil {
				return err
			}
			return awaitReady(cmd.Context(), w, args[0], time.Now().Add(patience))
		},
	}
	cmd.Flags().DurationVar(&patience, "timeout", time.Minute, "how long to wait")
	return cmd
}

// awaitReady looks at what is called name until that is ready, or cannot be so by a time.
func awaitReady(ctx context.Context, w wanted, name string, end time.Time) error {
	for {
		now := readiness{}
		all, err := askAll(ctx)
		if err != nil {
			return fail(exitFailure, "%w", err)
		}
		one, err := w.oneOf(all, name)
		_, gone := errors.AsType[*notRunning](err)
		switch {
		case gone:
			now.why = err.Error()
		case err != nil:
			return err
		default:
			at := slices.IndexFunc(all, func(r running) bool { return r.Path == one.Path })
			now = standing(all[at].status, one.Server, end)
		}
		switch left := time.Until(end); {
		case now.ready:
			return nil
		case now.never:
			return fail(exitFailure, "wait %s: %s", name, now.why)
		case left <= 0:
			return fail(exitFailure, "wait %s: the time is over: %s", name, now.why)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(waitEvery):
		}
	}
}

// readiness is whether something is ready; if not, why, and whether waiting is in vain.
type readiness struct {
	ready, never bool
	why          string
}

// standing is how ready an outlive is, or one of its servers, that stands so; end is when the wait is over.
func standing(s control.Status, server string, end time.Time) readiness {
	if s.State == noAnswer { // it may be stopped, and go on
		return readiness{why: fmt.Sprintf("it has not answered for %s", askPatience)}
	}
	if server == "" {
		return readyByState(s.State, []backend.Status{s.Status}, "", end)
	}
	at := slices.IndexFunc(s.Servers, func(m control.Member) bool { return m.Name == server })
	if at < 0 {
		return readiness{why: "its gateway does not tell of it"}
	}
	one := s.Servers[at].ServerStatus
	trouble := cmp.Or(overview.TroubleOf(one), overview.FailingOf(one))
	if stay := serving(one.Links); len(stay) > 0 {
		one.Links = stay
	}
	links := make([]backend.Status, len(one.Links))
	for i, l := range one.Links {
		links[i] = l.Status
	}
	r := readyByState(overview.StateOf(one), links, trouble, end)
	if len(links) < 2 {
		return r
	}
	r.never = true // unless one may still become so
	for i := range links {
		alone := one
		alone.Links = one.Links[i : i+1]
		of := readyByState(overview.StateOf(alone), links[i:i+1], "", end)
		if of.ready {
			return of
		}
		r.never = r.never && of.never
	}
	return r
}

// serving are the processes without those that only finish their calls.
func serving(links []gateway.LinkStatus) []gateway.LinkStatus {
	return slices.DeleteFunc(slices.Clone(links), func(l gateway.LinkStatus) bool { return l.Phase == "retired" })
}

// readyByState is the readiness of a server whose state has a name, and of which these processes are kept.
func readyByState(state string, kept []backend.Status, trouble string, end time.Time) readiness {
	switch state {
	case "ready", "asleep", "stopped", "idle", "serving": // a stopped or idle one starts with the first call
		return readiness{ready: true}
	}
	r := readiness{why: "it is " + state, never: state == "ending"}
	for _, one := range kept {
		if e := one.LastExit; e != nil && one.ServerPID == 0 {
			trouble = cmp.Or(trouble, e.Why)
		}
		if next := one.NextTryAt; next == nil {
			r.never = r.never || one.State == "failed"
		} else {
			r.never = r.never || next.After(end)
			trouble += fmt.Sprintf("; next start in %s", time.Until(*next).Round(100*time.Millisecond))
		}
	}
	if trouble != "" {
		r.why += ": " + trouble
	}
	return r
}
