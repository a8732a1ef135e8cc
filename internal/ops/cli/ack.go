package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/agents/incident"
	"github.com/outlive-mcp/outlive/internal/agents/monitor"
	"github.com/outlive-mcp/outlive/internal/record/logline"
)

const ackLong = `Acknowledge an incident: somebody deals with it. Nobody else is told of it and there are no reminders for four hours, or
with --snooze for one; then, if it is still there, it goes on. What the monitor does about the agent goes on in any case.

INCIDENT is an incident's id as the message has it, or the beginning of it; NAME is an agent or a server, and stands for all its open
incidents. Without either, the open incidents are shown.` + askExit

func newAck(io streams) *cobra.Command {
	var f requestFlags
	var snooze, asJSON bool
	var on hostFlags
	cmd := &cobra.Command{
		Use:         "ack [INCIDENT|NAME]",
		Short:       "Acknowledge an incident of an agent, or show those that are open",
		Long:        ackLong,
		Example:     "  outlive ack\n  outlive ack shop --snooze",
		Args:        takes(0, 1),
		Annotations: map[string]string{forOthers: "json by snooze home"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && on.given():
				return on.incidents(cmd.Context(), io.out, f.home, asJSON)
			case on.given():
				return f.acknowledgeThere(cmd.Context(), io, &on, args[0], snooze)
			case len(args) == 0:
				return showIncidents(cmd.Context(), io.out, f.home, asJSON)
			}
			verb := incident.Ack
			if snooze {
				verb = incident.Snooze
			}
			return f.acknowledge(cmd.Context(), io.out, args[0], verb)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&snooze, "snooze", false, "for one hour only")
	fl.BoolVar(&asJSON, "json", false, "without an argument: the open incidents as a JSON array")
	f.define(fl)
	on.define(cmd)
	return cmd
}

func showIncidents(ctx context.Context, w io.Writer, home string, asJSON bool) error {
	_, view, err := inspectHome(ctx, home)
	if err != nil {
		return err
	}
	list := view.Incidents
	if asJSON {
		records := []incidentRecord{}
		for _, i := range list {
			records = append(records, incidentRecordOf(i))
		}
		return encodeJSON(w, records)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "No incident is open.")
		return err
	}
	var rows [][]string
	for _, i := range list {
		rows = append(rows, incidentRow(incidentRecordOf(i), "", view.At))
	}
	return printTable(w, incidentHeading, rows)
}

var incidentHeading = []string{"INCIDENT", "AGENT", "CLASS", "SEVERITY", "STATE", "OPEN FOR", "DETAILS"}

// incidentRow is an incident's row; prefix is what its id begins with on another machine.
func incidentRow(i incidentRecord, prefix string, now time.Time) []string {
	return []string{
		logline.Printable(prefix + i.ID), logline.Printable(cmp.Or(i.Server, i.Agent)), logline.Printable(i.Class), logline.Printable(i.Severity), logline.Printable(i.State),
		briefly(now.Sub(i.Opened)), logline.Printable(i.Details),
	}
}

// acknowledge takes what was named for an agent, for an incident, or for the beginning of one's id.
func (f *requestFlags) acknowledge(ctx context.Context, w io.Writer, name string, verb incident.Verb) error {
	o, view, err := inspectHome(ctx, f.home)
	if err != nil {
		return err
	}
	meant, err := incidentsMeant(o, view, name)
	if err != nil {
		return err
	}
	for _, i := range meant {
		answer, err := f.ask(ctx, o, monitor.UserRequest{Verb: string(verb), Target: i.ID, Agent: i.Key.Agent})
		if err != nil && i.Key == (incident.Key{}) {
			return fail(exitFailure, "%s: %w; outlive ack%s shows what is open", i.ID, err, homeFlag(o.Home))
		}
		if err != nil {
			return fail(exitFailure, "%s: %w", i.ID, err)
		}
		fmt.Fprintln(w, strings.Join(strings.Fields(i.ID+" "+logline.Printable(cmp.Or(i.Key.Server(), i.Key.Agent))+" "+i.Key.Class), " ")+": "+logline.Printable(answer))
	}
	return nil
}

// incidentsMeant are the incidents that a person names.
func incidentsMeant(o monitor.Options, view monitor.View, name string) ([]incident.Incident, error) {
	var list, servers []incident.Incident
	for _, i := range view.Incidents {
		if i.ID == name {
			return []incident.Incident{i}, nil
		}
		if server := i.Key.Server(); server != "" && (name == server || name == i.Key.Agent) {
			servers = append(servers, i)
		}
		if strings.HasPrefix(i.ID, name) {
			list = append(list, i)
		}
	}
	if f, err := findingNamed(o, view, name); err == nil {
		if len(f.Incidents) == 0 {
			return nil, fail(exitFailure, "%s has no open incident", name)
		}
		return f.Incidents, nil
	}
	if len(servers) > 0 {
		return servers, nil
	}
	switch len(list) {
	case 1:
		return list, nil
	case 0:
		if len(view.Incidents) == 0 {
			return nil, fail(exitFailure, "no incident %q and no such agent: no incident is open", name)
		}
		return nil, fail(exitFailure, "no incident %q, and no agent or server of that name with one; outlive ack%s shows what is open: give an id, or a name", name, homeFlag(o.Home))
	}
	return nil, fail(exitUsage, "%q begins %d incidents: write more of it", name, len(list))
}
