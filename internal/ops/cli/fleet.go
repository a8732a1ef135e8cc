package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/view/collect"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/fleetsocket"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
)

// fleetProgram is the helper that connects machines. It is a program of its own because its libraries would cost every start.
const fleetProgram = "outlive-fleet"

// memberAgain is how often the member is asked for machines that have joined since.
const memberAgain = 2 * time.Second

const fleetLong = `Join machines that cannot reach each other over ssh, or that are many: each of them connects to one hub, outwards only, and says
there how its servers and agents stand. Then --fleet shows all of them, from any of them, and restart, agent restart, logs and ack work
there.

  outlive fleet hub                        run the hub, on a machine that all others can reach
  outlive fleet token make NAME            on the hub: a token for the machine that is to be called NAME
  outlive fleet join ADDRESS --token T     on that machine: join, and stay as long as this runs
  outlive fleet status                     the machines of the fleet
  outlive fleet leave                      take this machine out of it
  outlive fleet nats-user NAME             a user of your own NATS servers, which take the place of the hub
  outlive status --fleet                   also: agent list, agent restart, restart, logs, ack, watch, top, dashboard

The program outlive-fleet does this; it belongs beside outlive. "outlive fleet hub --help" and so on have more, and
https://github.com/outlive-mcp/outlive/blob/main/docs/FLEET.md the whole.`

func newFleet(io streams) *cobra.Command {
	return &cobra.Command{
		Use:                "fleet hub|token|join|status|leave|nats-user",
		Short:              "Join machines, to see and restart everything from each of them",
		Long:               fleetLong,
		DisableFlagParsing: true, // they are the helper's
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" && len(args) == 1 {
				return cmd.Help()
			}
			return runFleet(io, args)
		},
	}
}

// runFleet has the helper do it, in our place where the system can do that.
func runFleet(io streams, args []string) error {
	program, err := findHelper(fleetProgram)
	if err != nil {
		return fail(exitNotFound, "%w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fail(exitFailure, "%w", err)
	}
	own := []string{"--state", filepath.Join(stateDir(), "fleet"), "--socket", fleetSocket(), "--program", self, "--release", version()}
	return become(io, program, append(own, args...))
}

// fleetCases is the file of what the fleet has this machine tell people of.
func fleetCases() string { return filepath.Join(stateDir(), "fleet", "cases.json") }

// fleetSocket is where this machine's member of a fleet listens.
func fleetSocket() string { return control.PathIn(filepath.Join(stateDir(), "fleet"), "member.sock") }

// fleetMember is this machine's member of a fleet. It implements monitor.Fleet, hosts.Carrier and lease.Registry.
type fleetMember struct{ fleetsocket.Client }

func memberHere() fleetMember { return fleetMember{fleetsocket.Client{Path: fleetSocket()}} }

// Share implements monitor.Fleet.
func (m fleetMember) Share(ctx context.Context, list []monitor.SharedTrouble) ([]string, error) {
	troubles := []fleetsocket.Trouble{}
	for _, t := range list {
		troubles = append(troubles, fleetsocket.Trouble(t))
	}
	return m.Client.Share(ctx, troubles)
}

// fleetSet is all machines of the fleet.
func (f *hostFlags) fleetSet(ctx context.Context) (*hosts.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, f.limit)
	defer cancel()
	s, err := memberHere().Status(ctx)
	if err != nil {
		return nil, fail(exitFailure, "--fleet: %w", err)
	}
	var list []hosts.Host
	for _, h := range s.Hosts {
		list = append(list, hosts.Host{Name: h.Name})
	}
	if len(list) == 0 {
		return nil, fail(exitFailure, "--fleet: nothing is known of any machine yet: %s", cmp.Or(s.Why, "the hub has just been reached; try again"))
	}
	set := hosts.NewSet(list, hosts.Options{Version: version(), Limit: f.limit, Carrier: memberHere()})
	set.Partial = s.Partial
	return set, nil
}

// whole is an error where hosts of a set may be missing.
func whole(set *hosts.Set) error {
	if set.Partial {
		return fail(exitFailure, "--fleet: the hub has not told of all machines in time, so some may be missing: try again")
	}
	return nil
}

// Carry implements hosts.Carrier.
func (m fleetMember) Carry(ctx context.Context, host string, args []string, out, errs io.Writer) error {
	exit, err := m.Run(ctx, fleetsocket.Command{Host: host, Args: args}, out, errs)
	var e *fleetsocket.Ending
	switch {
	case errors.As(err, &e) && (e.Word == fleetsocket.Silent || e.Word == fleetsocket.NoAnswer):
		return &hosts.Failure{Kind: hosts.Silent, Text: e.Why}
	case err != nil:
		return &hosts.Failure{Kind: hosts.Unreachable, Text: err.Error()}
	case exit != 0:
		return &hosts.Failure{Kind: hosts.Refused, Code: exit}
	}
	return nil
}

// followFleet has a collector follow all machines of the fleet, also those that join later.
func (f *hostFlags) followFleet(o *collect.Options, set *hosts.Set) {
	m, followed := memberHere(), map[string]bool{}
	for _, h := range set.Hosts {
		followed[h.Name] = true
		o.Remotes = append(o.Remotes, &fleetHost{m: m, name: h.Name})
	}
	o.Joining = func(ctx context.Context, join func(collect.Remote)) {
		for ctx.Err() == nil {
			s, _ := m.Status(ctx) // that it does not answer is told by those that follow a machine
			for _, h := range s.Hosts {
				if !followed[h.Name] {
					followed[h.Name] = true
					join(&fleetHost{m: m, name: h.Name})
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(memberAgain):
			}
		}
	}
}

// fleetHost implements collect.Remote: what a machine has published, without asking it.
type fleetHost struct {
	m     fleetMember
	name  string
	after string // where it was followed to
}

// Name implements collect.Remote.
func (h *fleetHost) Name() string { return h.name }

// Follow implements collect.Remote.
func (h *fleetHost) Follow(ctx context.Context, each func(line []byte)) (word string, err error) {
	err = h.m.Follow(ctx, h.name, h.after, each)
	if e, ok := errors.AsType[*fleetsocket.Ending](err); ok {
		if e.Position != "" {
			h.after = e.Position
		}
		return e.Word, err
	}
	return fleetsocket.NoAnswer, err
}
