package cli

import (
	"cmp"
	"context"
	"io"
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
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	set, err := f.set()
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
		list[slices.IndexFunc(set.Hosts, func(h hosts.Host) bool { return h == a.Host })] = read[T](a)
	})
	return list
}
