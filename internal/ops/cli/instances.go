package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/gateway/sharing"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// wanted is a parsed name of a running instance: NAME, NAME@PID with the PID of its outlive, and behind a gateway
// NAME/SERVER or NAME@PID/SERVER.
type wanted struct {
	name   string
	pid    int // 0: any
	server string
}

func parseWanted(text string) (wanted, error) {
	outer, server, inGateway := strings.Cut(text, "/")
	name, number, numbered := strings.Cut(outer, "@")
	pid, err := strconv.Atoi(number) // 0 without one
	if name == "" || inGateway && server == "" || numbered && (err != nil || pid <= 0) {
		return wanted{}, fail(exitUsage, "%q: want NAME, NAME@PID or NAME/SERVER", text)
	}
	return wanted{name, pid, server}, nil
}

// notRunning is the error of a name that nothing has which runs.
type notRunning struct{ text string }

func (e *notRunning) Error() string { return e.text }

// running is one running outlive with its status; only its name if it does not answer.
type running struct {
	control.Instance
	status control.Status
}

// onlyHas reports whether it has servers and is none itself: a gateway, or the daemon of shared servers.
func (r running) onlyHas() bool {
	return r.status.Gateway() || r.status.Servers != nil || r.Name == sharedName && r.status.State == "serving"
}

// findInstance returns the one running outlive that a person calls name, and which of its servers is meant. A plain name
// may also be that of a server behind a gateway.
func findInstance(name string) (control.Instance, error) {
	w, err := parseWanted(name)
	if err != nil {
		return control.Instance{}, err
	}
	all, err := askAll(context.Background())
	if err != nil {
		return control.Instance{}, fail(exitFailure, "%w", err)
	}
	return w.oneOf(all, name)
}

// oneOf returns the one match among all that run. name is what a person has written.
func (w wanted) oneOf(all []running, name string) (control.Instance, error) {
	match, hint := w.among(all)
	switch len(match) {
	case 1:
		return match[0], nil
	case 0:
		return control.Instance{}, &exitError{exitFailure, &notRunning{fmt.Sprintf("no server %q is running%s", name, hint)}}
	}
	return control.Instance{}, fail(exitUsage, "%d servers are called %q; say which one: %s", len(match), name, labels(match))
}

// among returns the matches among all that run; without any, the hint lists what there is.
func (w wanted) among(all []running) (match []control.Instance, hint string) {
	for _, r := range all {
		itself := (r.Is(w.name) || r.status.Name == w.name) && (w.pid == 0 || w.pid == r.PID)
		switch {
		case itself && w.server == "":
			match = append(match, r.Instance)
		case itself && slices.Contains(r.status.ServerNames(), w.server):
			match = append(match, r.of(w.server))
		case itself && r.status.State == noAnswer:
			hint = ": " + r.Name + " does not answer, so its servers are not known"
		case itself && r.status.Gateway():
			hint = ": " + r.Name + " has " + strings.Join(r.status.ServerNames(), ", ")
		case itself:
			hint = ": " + r.Name + " is not a gateway"
		case w.server == "" && w.pid == 0 && slices.Contains(r.status.ServerNames(), w.name):
			match = append(match, r.of(w.name))
		}
	}
	hint = cmp.Or(hint, "; running: "+namesOf(all))
	found := slices.Clone(match)
	for _, r := range all {
		match = slices.DeleteFunc(match, func(i control.Instance) bool { return i.PID == r.PID && r.hasFor(found, i.Server) })
	}
	return match, hint
}

// hasFor reports whether one of these runs has that server from the daemon r: then both are one.
func (r running) hasFor(found []control.Instance, server string) bool {
	at := slices.Index(r.status.ServerNames(), server)
	return at >= 0 && slices.ContainsFunc(r.status.Servers[at].Runs, func(run sharing.Run) bool {
		return slices.ContainsFunc(found, func(i control.Instance) bool { return i.PID == run.PID && i.Server == "" })
	})
}

// of is one server of a gateway.
func (r running) of(server string) control.Instance {
	i := r.Instance
	i.Server = server
	return i
}

// findGateway returns the one running gateway, or that of the name.
func findGateway(name string) (control.Instance, error) {
	if name != "" {
		return findInstance(name)
	}
	all, err := askAll(context.Background())
	if err != nil {
		return control.Instance{}, fail(exitFailure, "%w", err)
	}
	var gateways []control.Instance
	for _, r := range all {
		if r.status.Gateway() {
			gateways = append(gateways, r.Instance)
		}
	}
	switch len(gateways) {
	case 1:
		return gateways[0], nil
	case 0:
		return control.Instance{}, fail(exitFailure, "no gateway is running")
	}
	return control.Instance{}, fail(exitUsage, "%d gateways are running; say which one: %s", len(gateways), labels(gateways))
}

// noAnswer is the state of what runs and does not tell how it stands.
const noAnswer = control.NoAnswer

// askAll asks every running outlive concurrently for its status, ordered by name.
func askAll(ctx context.Context) ([]running, error) {
	instances, err := control.Discover(socketDirs()...)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	all := make([]running, len(instances))
	var asked sync.WaitGroup
	for n, i := range instances {
		asked.Go(func() {
			s, err := i.Status(ctx)
			if err != nil {
				s.Name, s.PID, s.State = i.Name, i.PID, noAnswer
			} else if i.Is(s.Name) {
				i.Name = s.Name // the file of the socket shows a long one cut
			}
			all[n] = running{i, s}
		})
	}
	asked.Wait()
	return all, nil
}

// labels are names that are unique.
func labels(all []control.Instance) string {
	names := make([]string, len(all))
	for n, i := range all {
		names[n] = i.Label()
	}
	return strings.Join(names, ", ")
}

// takesRunning takes the name of a running server. Where none is given, the error says which there are.
func takesRunning(cmd *cobra.Command, args []string) error {
	err := takes(1, 1)(cmd, args)
	if err == nil || len(args) > 0 {
		return err
	}
	if all, failed := askAll(context.Background()); failed == nil {
		err = fmt.Errorf("%w; running here: %s", err, namesOf(all))
	}
	return err
}

// namesOf are the names of all that runs, with the servers of gateways.
func namesOf(all []running) string {
	var names []string
	for _, r := range all {
		names = append(names, r.Label())
		for _, server := range r.status.ServerNames() {
			names = append(names, r.of(server).Label())
		}
	}
	return cmp.Or(strings.Join(names, ", "), "none")
}
