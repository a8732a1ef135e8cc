package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

func newStatus(io streams) *cobra.Command {
	var asJSON bool
	var on hostFlags
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show everything outlive keeps alive on this machine",
		Long: `Show everything outlive keeps alive for this user on this machine: one row for each server, and below a gateway's row
one for each of its servers. What is wrong stands below the table. ERA is which form of the protocol client and server
speak; "legacy>modern" is a client of the legacy era whose server speaks the modern one only, and is translated for it.

EXIT STATUS
  0  shown, also when nothing runs
  1  the sockets could not be read, or a host did not answer`,
		Args:        takes(0, 0),
		Annotations: map[string]string{forOthers: "json"},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if on.given() {
				return on.status(cmd.Context(), io, asJSON)
			}
			running, err := askAll(cmd.Context())
			if err != nil {
				return fail(exitFailure, "%w", err)
			}
			all := make([]control.Status, len(running))
			for i, r := range running {
				all[i] = r.status
			}
			if asJSON {
				return encodeJSON(io.out, all)
			}
			return printStatus(io.out, all, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a JSON array; with --hosts an object for each host")
	on.define(cmd)
	return cmd
}

func printStatus(w io.Writer, all []control.Status, now time.Time) error {
	w = logline.NewScreen(w)
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "outlive keeps nothing alive here.")
		return err
	}
	var rows [][]string
	for _, s := range all {
		rows = append(rows, statusRows(s)...)
	}
	if err := printTable(w, statusHeading, rows); err != nil {
		return err
	}
	for _, s := range all {
		printNotes(w, s, now)
	}
	return nil
}

var statusHeading = []string{"NAME", "STATE", "OUTLIVE", "SERVER", "RESTARTS", "UP", "IN FLIGHT", "QUEUED", "ERA", "CLIENT"}

// statusRows are the row of one running outlive, and those of a gateway's servers.
func statusRows(s control.Status) [][]string {
	client := strings.TrimSpace(s.Client)
	if s.Gateway() {
		client = cmp.Or(s.URL, "stdio")
	}
	restarts := fmt.Sprint(s.RestartCount)
	if s.Gateway() || s.Servers != nil {
		restarts = "-" // those of its servers are in their rows
	}
	rows := [][]string{{
		logline.Printable(s.Name), overview.RunState(s.Status), fmt.Sprint(s.PID), orDash(s.ServerPID), restarts, upFor(s.UptimeMS), fmt.Sprint(s.InFlight),
		fmt.Sprint(s.Queued), overview.Eras(s.Status), logline.Printable(client),
	}}
	for _, server := range s.Servers {
		rows = append(rows, serverRow(s.Name, server))
	}
	return rows
}

// printNotes tells what is wrong with one running outlive and its servers.
func printNotes(w io.Writer, s control.Status, now time.Time) {
	name := logline.Printable(s.Name)
	printNote(w, name, "failing: ", s.Failing)
	printTrouble(w, name, s.Status, now)
	printShared(w, s)
	printNote(w, name, "takes what other gateways pass on at ", logline.Printable(s.PeersAt))
	printNote(w, name, "no sessions can be had here: ", logline.Printable(s.SessionsAway))
	printNote(w, name, "", damagedSessions(s.DamagedSessions))
	for _, server := range s.Servers {
		name := logline.Printable(s.Name + "/" + server.Name)
		trouble := overview.TroubleOf(server.ServerStatus)
		printNote(w, name, "cannot be used: ", trouble)
		if trouble == "" {
			printNote(w, name, "failing: ", overview.FailingOf(server.ServerStatus))
		}
		printNote(w, name, "is used without a list: ", logline.Printable(server.Lacks))
		printHidden(w, name, server.Hidden)
		for _, l := range server.Links {
			if trouble != "" {
				l.LastExit = nil // it has been told
			}
			printTrouble(w, name, l.Status, now)
		}
	}
}

// printNote prints what is to be said of something, with further lines of it set in. "": there is nothing.
func printNote(w io.Writer, name, what, text string) {
	if text != "" {
		fmt.Fprintf(w, "%s: %s%s\n", name, what, strings.ReplaceAll(text, "\n", "\n  "))
	}
}

// printHidden names the resources of a server in whose place another server's are shown.
func printHidden(w io.Writer, name string, hidden []gateway.HiddenResource) {
	of := map[string][]string{}
	for _, h := range hidden {
		of[h.Of] = append(of[h.Of], logline.Printable(h.URI))
	}
	for _, server := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(w, "%s: hidden, since %s has resources with these URIs: %s\n", name, logline.Printable(server), someOf(of[server]))
	}
}

// serverRow is the row of a server behind a gateway: all its processes together.
func serverRow(gatewayName string, s control.Member) []string {
	var pids, clients, spoken []string
	var inFlight, queued int
	var up int64
	for _, l := range s.Links {
		if l.ServerPID != 0 {
			pids = append(pids, fmt.Sprint(l.ServerPID))
		}
		if client := clientOf(l); client != "" && !slices.Contains(clients, client) {
			clients = append(clients, client)
		}
		if era := overview.Eras(l.Status); era != "" && !slices.Contains(spoken, era) {
			spoken = append(spoken, era)
		}
		inFlight += l.InFlight
		queued += l.Queued
		up = max(up, l.UptimeMS)
	}
	return []string{
		logline.Printable(gatewayName + "/" + s.Name), overview.StateOf(s.ServerStatus), "", cmp.Or(someOf(pids), "-"), fmt.Sprint(overview.RestartsOf(s.ServerStatus)), upFor(up),
		fmt.Sprint(inFlight), fmt.Sprint(queued), strings.Join(spoken, ", "), logline.Printable(strings.Join(clients, ", ")),
	}
}

// clientOf names the client whose own process it is, with what it sees if that is not everything.
func clientOf(l gateway.LinkStatus) string {
	if l.View == "" {
		return l.Client
	}
	return strings.TrimSpace(l.Client + " (" + l.View + ")")
}

// someOf are the first few of many texts, and how many more there are: a row is to stay readable.
func someOf(many []string) string {
	const most = 3
	if len(many) <= most+1 {
		return strings.Join(many, ",")
	}
	return fmt.Sprintf("%s +%d", strings.Join(many[:most], ","), len(many)-most)
}

// printTrouble tells what is wrong with a server, or about to happen to it.
func printTrouble(w io.Writer, name string, s backend.Status, now time.Time) {
	if s.NextTryAt != nil {
		fmt.Fprintf(w, "%s: next start in %s\n", name, s.NextTryAt.Sub(now).Round(time.Second))
	}
	for _, b := range s.Beside {
		fmt.Fprintf(w, "%s: %s server %d, %d MiB, %d in flight\n", name, b.Role, b.PID, b.RSS>>20, b.InFlight)
	}
	for _, c := range s.Unanswered {
		if c.Silent {
			fmt.Fprintf(w, "%s: silent: %s has run for %s, and nothing is heard of it\n", name, logline.Printable(cmp.Or(c.Tool, c.Method)),
				now.Sub(c.Since).Round(time.Second))
		}
	}
	if f := s.ReloadFailed; f != nil {
		fmt.Fprintf(w, "%s: the last planned restart came to nothing, %s ago: %s\n", name, now.Sub(f.At).Round(time.Second),
			strings.TrimSpace(f.Error+" "+f.Hint))
	}
	if e := s.LastExit; e != nil && s.ServerPID == 0 && s.ReadySince == nil {
		fmt.Fprintf(w, "%s: %s\n", name, strings.Join(append([]string{e.Why}, e.Stderr...), "\n  "))
	}
}

// upFor is how long something runs, from milliseconds.
func upFor(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return (time.Duration(ms) * time.Millisecond).Round(time.Second).String()
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
