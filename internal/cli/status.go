package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/control"
)

func newStatus(io streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show everything outlive keeps alive on this machine",
		Long: `Show everything outlive keeps alive for this user on this machine.

EXIT STATUS
  0  shown, also when nothing runs
  1  the sockets could not be read`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := collectStatus(cmd.Context())
			if err != nil {
				return fail(exitFailure, "%w", err)
			}
			if asJSON {
				enc := json.NewEncoder(io.out)
				enc.SetIndent("", "  ")
				return enc.Encode(all)
			}
			return printStatus(io.out, all, time.Now())
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a JSON array")
	return cmd
}

// collectStatus asks every running outlive; one that does not answer is left out, its silence told by an empty state.
func collectStatus(ctx context.Context) ([]control.Status, error) {
	instances, err := control.Discover(socketDir())
	if err != nil {
		return nil, err
	}
	all := []control.Status{}
	for _, i := range instances {
		one, cancel := context.WithTimeout(ctx, askPatience)
		s, err := i.Status(one)
		cancel()
		if err != nil {
			s.Name, s.PID, s.State = i.Name, i.PID, "no answer"
		}
		all = append(all, s)
	}
	return all, nil
}

func printStatus(w io.Writer, all []control.Status, now time.Time) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "outlive keeps nothing alive here.")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tSTATE\tOUTLIVE\tSERVER\tRESTARTS\tUP\tIN FLIGHT\tQUEUED\tCLIENT")
	for _, s := range all {
		up := "-"
		if s.UptimeMS > 0 {
			up = (time.Duration(s.UptimeMS) * time.Millisecond).Round(time.Second).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%d\t%s\t%d\t%d\t%s\n", s.Name, s.State, s.PID, orDash(s.ServerPID), s.RestartCount,
			up, s.InFlight, s.Queued, strings.TrimSpace(s.Client))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, s := range all {
		if s.NextTryAt != nil {
			fmt.Fprintf(w, "%s: next start in %s\n", s.Name, s.NextTryAt.Sub(now).Round(time.Second))
		}
		for _, b := range s.Beside {
			fmt.Fprintf(w, "%s: %s server %d, %d MiB, %d in flight\n", s.Name, b.Role, b.PID, b.RSS>>20, b.InFlight)
		}
		if f := s.ReloadFailed; f != nil {
			fmt.Fprintf(w, "%s: the last planned restart came to nothing, %s ago: %s\n", s.Name, now.Sub(f.At).Round(time.Second),
				strings.TrimSpace(f.Error+" "+f.Hint))
		}
		if e := s.LastExit; e != nil && s.ServerPID == 0 {
			fmt.Fprintf(w, "%s: last exit %d %s\n", s.Name, e.Code, strings.Join(e.Stderr, "\n  "))
		}
	}
	return nil
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}
