package cli

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/child"
)

func newDoctor(io streams) *cobra.Command {
	var sweep bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what this machine offers, and look for processes left over",
		Long: `Check what this machine offers against processes that outlive their server, and look for such that an outlive which
is gone has left behind.

EXIT STATUS
  0  nothing is left over
  1  strays were found, or could not be looked for`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := printMechanisms(io.out); err != nil {
				return err
			}
			if sweep {
				return sweepStrays(cmd.Context(), io.out)
			}
			return printStrays(io.out)
		},
	}
	cmd.Flags().BoolVar(&sweep, "sweep", false, "end the strays; what cannot be identified is left alone")
	return cmd
}

func printMechanisms(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "MECHANISM\tIN USE\tDETAIL")
	for _, m := range child.Mechanisms() {
		used := "no"
		if m.InUse {
			used = "yes"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, used, m.Detail)
	}
	return t.Flush()
}

func printStrays(w io.Writer) error {
	strays, err := child.Strays()
	if err != nil {
		return fail(exitFailure, "look for strays: %w", err)
	}
	if len(strays) == 0 {
		_, err := fmt.Fprintln(w, "No process is left over.")
		return err
	}
	tellStrays(w, strays)
	return fail(exitFailure, "%d processes are left over; outlive doctor --sweep ends them, and so does the next outlive run", len(strays))
}

func tellStrays(w io.Writer, strays []child.Stray) {
	for _, s := range strays {
		fmt.Fprintf(w, "left over: %d (of outlive %d) %s\n", s.PID, s.Outlive, s.Command)
	}
}

func sweepStrays(ctx context.Context, w io.Writer) error {
	report, err := child.SweepStrays(ctx)
	if err != nil {
		return fail(exitFailure, "sweep: %w", err)
	}
	tellStrays(w, report.Found)
	fmt.Fprintln(w, report)
	if len(report.Left) > 0 {
		return fail(exitFailure, "%d processes are still there", len(report.Left))
	}
	return nil
}
