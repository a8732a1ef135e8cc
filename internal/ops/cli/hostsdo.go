package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
)

// restartThere is outlive restart of one server on other machines. With several hosts the one is found that has it.
func restartThere(ctx context.Context, o restartOrder, set *hosts.Set, name string) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	if len(set.Hosts) > 1 {
		h, label, err := findThere(ctx, o.io, set, name)
		if err != nil {
			return err
		}
		set, name = set.Of(h), label
	}
	return restartOn(ctx, o, set, name)
}

// restartOn has outlive on each host restart what is a name, --all or --failed, all at once, and tells of each server.
func restartOn(ctx context.Context, o restartOrder, set *hosts.Set, what string) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	set = set.Within(o.patience + set.Limit())
	args := []string{"restart", "--json", "--reason", o.reason, "--timeout", o.patience.String(), what}
	if o.asJSON {
		return askJSON(ctx, o.io.out, set, args)
	}
	bad, count := 0, 0
	for _, a := range askedAll[json.RawMessage](ctx, set, args) {
		name := logline.Printable(a.Host.Name)
		var list []restartRecord
		if json.Unmarshal(a.Out, &list) != nil {
			count++
			bad++
			fmt.Fprintf(o.io.err, "outlive: %s: %s\n", name, a.failure())
			continue
		}
		for _, r := range list {
			count++
			if r.Error != "" {
				bad++
				fmt.Fprintf(logline.NewScreen(o.io.err), "outlive: restart %s/%s: %s\n", name, r.Name, r.Error)
				continue
			}
			fmt.Fprintf(logline.NewScreen(o.io.out), "%s/%s: %s\n", name, r.Name, r.Text)
		}
	}
	switch {
	case bad > 0 && count > 1:
		return fail(exitFailure, "%d of %d did not become ready, or did not answer", bad, count)
	case bad > 0:
		return &exitError{code: exitFailure}
	case count == 0:
		fmt.Fprintln(o.io.out, "There is nothing to restart.")
	}
	return nil
}

// failure says why a host did not do what it was asked for.
func (a told[T]) failure() string {
	err := cmp.Or(a.Err, errors.New("its answer is not understood"))
	if hosts.KindOf(err) == hosts.Refused {
		return logline.Printable(err.Error())
	}
	return hosts.KindOf(err).Word() + ": " + strings.ReplaceAll(logline.Printable(err.Error()), `\n`, "\n  ")
}

// findThere finds the one host that has what is called name, and what it is called there. What runs on hosts that do not answer
// is not known, which is told.
func findThere(ctx context.Context, io streams, set *hosts.Set, name string) (hosts.Host, string, error) {
	w, err := parseWanted(name)
	if err != nil {
		return hosts.Host{}, "", err
	}
	type place struct {
		host hosts.Host
		control.Instance
	}
	var found []place
	var names, asked []string
	for _, a := range askedAll[[]control.Status](ctx, set, []string{"status", "--json"}) {
		if a.Err != nil {
			fmt.Fprintf(io.err, "outlive: %s: %s\n", a.Host.Name, a.failure())
			continue
		}
		asked = append(asked, a.Host.Name)
		var all []running
		for _, s := range a.value {
			all = append(all, running{control.Instance{Name: s.Name, PID: s.PID}, s})
		}
		match, _ := w.among(all)
		for _, i := range match {
			found = append(found, place{a.Host, i})
			names = append(names, a.Host.Name+"/"+i.Label())
		}
	}
	switch len(found) {
	case 1:
		return found[0].host, found[0].Label(), nil
	case 0:
		return hosts.Host{}, "", fail(exitFailure, "no server %q is running on %s", name, cmp.Or(strings.Join(asked, ", "), "a host that answers"))
	}
	return hosts.Host{}, "", fail(exitUsage, "%d servers are called %q; say which one: %s", len(found), name, strings.Join(names, ", "))
}

// logsThere is outlive logs on other machines.
func logsThere(ctx context.Context, io streams, set *hosts.Set, name string, follow bool) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	if len(set.Hosts) > 1 {
		h, label, err := findThere(ctx, io, set, name)
		if err != nil {
			return err
		}
		set, name = set.Of(h), label
	}
	args := []string{"logs", name}
	if follow {
		args = append(args, "--follow")
	}
	a := set.Run(ctx, set.Hosts[0], hosts.Command{Args: args, Out: logScreen(io.out), Errs: logline.NewScreen(io.err), Lasting: true})
	return handedOn(ctx, a)
}

// handedOn is the end of a command whose stderr was handed on: outlive there has said by itself what was wrong.
func handedOn(ctx context.Context, a hosts.Answer) error {
	var f *hosts.Failure
	switch {
	case a.Err == nil, ctx.Err() != nil:
		return nil
	case errors.As(a.Err, &f) && f.Kind == hosts.Refused:
		return &exitError{code: cmp.Or(f.Code, exitFailure)}
	}
	return fail(exitFailure, "%s: %s: %w", a.Host.Name, hosts.KindOf(a.Err).Word(), a.Err)
}

// acknowledgeThere is outlive ack of an incident on other machines: on the one host that has it.
func (f *requestFlags) acknowledgeThere(ctx context.Context, io streams, set *hosts.Set, name string, snooze bool) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	if len(set.Hosts) > 1 {
		h, err := findIncident(ctx, io, set, f.home, name)
		if err != nil {
			return err
		}
		set = set.Of(h)
	}
	// Who it is stands on the other machine as on this one.
	by := cmp.Or(f.by, userAndMachine())
	args := homeArgs([]string{"ack", name, "--by", by}, f.home)
	if snooze {
		args = append(args, "--snooze")
	}
	var out bytes.Buffer
	a := set.Within(set.Limit()+askWait).Run(ctx, set.Hosts[0], hosts.Command{Args: args, Out: &out, Errs: logline.NewScreen(io.err)})
	for line := range strings.Lines(out.String()) {
		fmt.Fprint(logline.NewScreen(io.out), a.Host.Name+"/"+line)
	}
	return handedOn(ctx, a)
}

func userAndMachine() string {
	if name, err := os.Hostname(); err == nil {
		return userName() + "@" + name
	}
	return userName()
}

// findIncident finds the one host with an open incident of that id, or of that agent.
func findIncident(ctx context.Context, io streams, set *hosts.Set, home, name string) (hosts.Host, error) {
	var found []hosts.Host
	var names []string
	for _, a := range askedAll[[]incidentRecord](ctx, set, homeArgs([]string{"ack", "--json"}, home)) {
		if a.Err != nil {
			fmt.Fprintf(io.err, "outlive: %s: %s\n", a.Host.Name, a.failure())
			continue
		}
		for _, r := range a.value {
			if strings.HasPrefix(r.ID, name) || r.Agent == name {
				found = append(found, a.Host)
				names = append(names, a.Host.Name+"/"+name)
				break
			}
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return hosts.Host{}, fail(exitFailure, "no incident %q, and no agent of that name with one, on the hosts that answer", name)
	}
	return hosts.Host{}, fail(exitUsage, "%q is on several hosts; say which one: %s", name, strings.Join(names, ", "))
}
