package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
)

// status is outlive status on other machines.
func (f *hostFlags) status(ctx context.Context, io streams, asJSON bool) error {
	return lookAtHosts(ctx, f, io.out, []string{"status", "--json"}, asJSON, statusHeading, "nothing runs", func(t *hostTable, a told[[]control.Status]) (rows [][]string) {
		for _, s := range a.value {
			s.Name = a.Host.Name + "/" + s.Name
			rows = append(rows, statusRows(s)...)
			printNotes(&t.notes, s, time.Now())
		}
		return rows
	})
}

// agents is outlive agent list on other machines.
func (f *hostFlags) agents(ctx context.Context, out io.Writer, home string, asJSON bool) error {
	args := homeArgs([]string{"agent", "list", "--json"}, home)
	return lookAtHosts(ctx, f, out, args, asJSON, agentHeading, "no agent is declared", func(t *hostTable, a told[homeRecord]) (rows [][]string) {
		prefix := a.Host.Name + "/"
		for _, r := range a.value.Agents {
			rows = append(rows, agentRow(r, prefix))
		}
		if a.value.Trouble != "" {
			t.note(prefix + lostRegistry(a.value))
		}
		_ = printTroubles(&t.notes, a.value, prefix) // a buffer takes everything
		for _, note := range a.value.Notes {
			if !strings.HasPrefix(note, noMonitor) {
				t.note(prefix + note)
			} else if len(rows) > 0 {
				t.note(a.Host.Name + ": " + note)
			}
		}
		return rows
	})
}

// homeArgs are a command's words with --home, where it is given.
func homeArgs(args []string, home string) []string {
	if home != "" {
		return append(args, "--home", home)
	}
	return args
}

// incidents is outlive ack without an argument on other machines.
func (f *hostFlags) incidents(ctx context.Context, out io.Writer, home string, asJSON bool) error {
	args := homeArgs([]string{"ack", "--json"}, home)
	return lookAtHosts(ctx, f, out, args, asJSON, incidentHeading, "no incident is open", func(_ *hostTable, a told[[]incidentRecord]) (rows [][]string) {
		for _, r := range a.value {
			rows = append(rows, incidentRow(r, a.Host.Name+"/", time.Now()))
		}
		return rows
	})
}

// lookAtHosts has outlive on all hosts show something as JSON, and prints it as such, or as one table in which a host that has nothing
// of it has a row that says none, and one that does not answer a row that says why.
func lookAtHosts[T any](ctx context.Context, f *hostFlags, out io.Writer, args []string, asJSON bool, heading []string, none string, rowsOf func(*hostTable, told[T]) [][]string) error {
	set, err := f.set(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return cmp.Or(askJSON(ctx, out, set, args), whole(set))
	}
	t := &hostTable{columns: columns{to: logline.NewScreen(out)}, set: set, heading: heading}
	bad := inBatches(ctx, set, args, func(batch []told[T]) {
		var rows [][]string
		for _, a := range batch {
			if a.Err != nil {
				rows = append(rows, t.silent(a.Answer))
				continue
			}
			t.tellVersion(a.Answer)
			of := rowsOf(t, a)
			if len(of) == 0 {
				of = [][]string{{logline.Printable(a.Host.Name), none}}
			}
			rows = append(rows, of...)
		}
		t.add(rows)
	})
	return cmp.Or(t.end(), whole(set), missed(bad))
}

// askedAll are the answers of all hosts, in the order of the list.
func askedAll[T any](ctx context.Context, set *hosts.Set, args []string) []told[T] {
	list := make([]told[T], len(set.Hosts))
	set.Ask(ctx, args, func(a hosts.Answer) {
		list[slices.Index(set.Hosts, a.Host)] = read[T](a)
	})
	return list
}

// restartOn has outlive on each host restart what is a name, --all or --failed, all at once, and tells of each server.
func restartOn(ctx context.Context, o restartOrder, set *hosts.Set, what string) error {
	set = set.Within(o.patience + set.Limit())
	args := []string{"restart", "--json", "--reason", o.reason, "--timeout", o.patience.String(), what}
	if o.asJSON {
		return askJSON(ctx, o.io.out, set, args)
	}
	bad, count := 0, 0
	for _, a := range askedAll[json.RawMessage](ctx, set, args) {
		name := logline.Printable(a.Host.Name)
		var list []restartRecord
		if hosts.Decode(a.Out, &list) != nil {
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
		return missed(bad)
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

// serverThere finds the one host that has the server called name, and what it is called there.
func (f *hostFlags) serverThere(ctx context.Context, io streams, name string) (*hosts.Set, string, error) {
	set, name, err := f.named(ctx, name)
	if err != nil {
		return nil, "", err
	}
	w, err := parseWanted(name)
	if err != nil && len(set.Hosts) > 1 {
		return nil, "", err
	}
	return oneThere(ctx, io, set, []string{"status", "--json"}, "server", "is running", name, func(there []control.Status) (labels []string) {
		var all []running
		for _, s := range there {
			all = append(all, running{control.Instance{Name: s.Name, PID: s.PID}, s})
		}
		match, _ := w.among(all)
		for _, i := range match {
			labels = append(labels, i.Label())
		}
		return labels
	})
}

// oneThere finds the one host that has what is called name, and what it is called there; labels are all of that in a host's answer. kind and
// state are for the error that there is none. What is on hosts that do not answer is not known, which is told. One host alone says by
// itself that it has none.
func oneThere[T any](ctx context.Context, io streams, set *hosts.Set, args []string, kind, state, name string, labels func(T) []string) (found *hosts.Set, label string, err error) {
	if len(set.Hosts) == 1 {
		return set, name, nil
	}
	var names, asked []string
	for _, a := range askedAll[T](ctx, set, args) {
		if a.Err != nil {
			fmt.Fprintf(io.err, "outlive: %s: %s\n", a.Host.Name, a.failure())
			continue
		}
		asked = append(asked, a.Host.Name)
		for _, label = range labels(a.value) {
			found = set.Of(a.Host)
			names = append(names, a.Host.Name+"/"+label)
		}
	}
	switch len(names) {
	case 1:
		return found, label, nil
	case 0:
		return nil, "", fail(exitFailure, "no %s %q %s on %s", kind, name, state, cmp.Or(strings.Join(asked, ", "), "a host that answers"))
	}
	return nil, "", fail(exitUsage, "%d %ss are called %q; say which one: %s", len(names), kind, name, strings.Join(names, ", "))
}

// logs is outlive logs on other machines.
func (f *hostFlags) logs(ctx context.Context, io streams, name string, follow bool) error {
	set, name, err := f.serverThere(ctx, io, name)
	if err != nil {
		return err
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
func (f *requestFlags) acknowledgeThere(ctx context.Context, io streams, on *hostFlags, name string, snooze bool) error {
	set, name, err := on.named(ctx, name)
	if err != nil {
		return err
	}
	set, name, err = oneThere(ctx, io, set, homeArgs([]string{"ack", "--json"}, f.home), "incident", "is open", name, func(list []incidentRecord) []string {
		return nameIf(name, slices.ContainsFunc(list, func(r incidentRecord) bool {
			return strings.HasPrefix(r.ID, name) || r.Agent == name || r.Server == name
		}))
	})
	if err != nil {
		return err
	}
	// Who it is stands on the other machine as on this one.
	args := []string{"ack", name, "--by", cmp.Or(f.by, userAndMachine())}
	if snooze {
		args = append(args, "--snooze")
	}
	return f.askThere(ctx, io, set, args)
}

// restartThere is outlive agent restart of an agent on other machines: on the one host that has it.
func (f *requestFlags) restartThere(ctx context.Context, io streams, on *hostFlags, name string) error {
	set, name, err := on.named(ctx, name)
	if err != nil {
		return err
	}
	set, name, err = oneThere(ctx, io, set, homeArgs([]string{"agent", "list", "--json"}, f.home), "agent", "is declared", name, func(h homeRecord) []string {
		return nameIf(name, slices.ContainsFunc(h.Agents, func(r agentRecord) bool { return r.Key == name }))
	})
	if err != nil {
		return err
	}
	return f.askThere(ctx, io, set, []string{"agent", "restart", name})
}

// nameIf is the name where there is something of that name.
func nameIf(name string, there bool) []string {
	if there {
		return []string{name}
	}
	return nil
}

// askThere has outlive on one host ask the monitor there.
func (f *requestFlags) askThere(ctx context.Context, io streams, set *hosts.Set, args []string) error {
	var out bytes.Buffer
	a := set.Within(set.Limit()+askWait).Run(ctx, set.Hosts[0], hosts.Command{Args: homeArgs(args, f.home), Out: &out, Errs: logline.NewScreen(io.err)})
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
