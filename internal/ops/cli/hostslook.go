package cli

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
)

// status is outlive status on other machines.
func (f *hostFlags) status(ctx context.Context, io streams, asJSON bool) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	set, err := f.set()
	if err != nil {
		return err
	}
	args := []string{"status", "--json"}
	if asJSON {
		return askJSON(ctx, io.out, set, args)
	}
	t := newHostTable(io.out, set, statusHeading)
	bad := inBatches(ctx, set, args, func(batch []told[[]control.Status]) {
		var rows [][]string
		for _, a := range batch {
			if a.Err != nil {
				rows = append(rows, t.silent(a.Answer))
				continue
			}
			t.tellVersion(a.Answer)
			for _, s := range a.value {
				s.Name = a.Host.Name + "/" + s.Name
				rows = append(rows, statusRows(s)...)
				printNotes(&t.notes, s, time.Now())
			}
			if len(a.value) == 0 {
				rows = append(rows, []string{logline.Printable(a.Host.Name), "nothing runs"})
			}
		}
		t.add(rows)
	})
	return cmp.Or(t.end(), missed(bad))
}

// agents is outlive agent list on other machines.
func (f *hostFlags) agents(ctx context.Context, out io.Writer, home string, asJSON bool) error {
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	set, err := f.set()
	if err != nil {
		return err
	}
	args := homeArgs([]string{"agent", "list", "--json"}, home)
	if asJSON {
		return askJSON(ctx, out, set, args)
	}
	t := newHostTable(out, set, agentHeading)
	bad := inBatches(ctx, set, args, func(batch []told[homeRecord]) {
		var rows [][]string
		for _, a := range batch {
			if a.Err != nil {
				rows = append(rows, t.silent(a.Answer))
				continue
			}
			t.tellVersion(a.Answer)
			prefix := a.Host.Name + "/"
			for _, r := range a.value.Agents {
				rows = append(rows, agentRow(r, prefix))
			}
			if len(a.value.Agents) == 0 {
				rows = append(rows, []string{logline.Printable(a.Host.Name), "no agent is declared"})
			}
			if a.value.Trouble != "" {
				t.note(prefix + lostRegistry(a.value))
			}
			_ = printTroubles(&t.notes, a.value, prefix) // a buffer takes everything
			for _, note := range a.value.Notes {
				t.note(prefix + note)
			}
		}
		t.add(rows)
	})
	return cmp.Or(t.end(), missed(bad))
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
	ctx, stop := untilInterrupted(ctx)
	defer stop()
	set, err := f.set()
	if err != nil {
		return err
	}
	args := homeArgs([]string{"ack", "--json"}, home)
	if asJSON {
		return askJSON(ctx, out, set, args)
	}
	t := newHostTable(out, set, incidentHeading)
	bad := inBatches(ctx, set, args, func(batch []told[[]incidentRecord]) {
		var rows [][]string
		for _, a := range batch {
			if a.Err != nil {
				rows = append(rows, t.silent(a.Answer))
				continue
			}
			t.tellVersion(a.Answer)
			for _, r := range a.value {
				rows = append(rows, incidentRow(r, a.Host.Name+"/", time.Now()))
			}
			if len(a.value) == 0 {
				rows = append(rows, []string{logline.Printable(a.Host.Name), "no incident is open"})
			}
		}
		t.add(rows)
	})
	return cmp.Or(t.end(), missed(bad))
}

// askedAll are the answers of all hosts, in the order of the list.
func askedAll[T any](ctx context.Context, set *hosts.Set, args []string) []told[T] {
	list := make([]told[T], len(set.Hosts))
	set.Ask(ctx, args, func(a hosts.Answer) {
		list[slices.IndexFunc(set.Hosts, func(h hosts.Host) bool { return h == a.Host })] = read[T](a)
	})
	return list
}
