package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

func newRestart(io streams) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:   "restart NAME",
		Short: "Restart one server; return when the new one is ready",
		Long: `Restart the server NAME and return when the new process is ready. The client behind it notices nothing.
Where several servers have one name, say NAME@PID with the PID of its outlive.

EXIT STATUS
  0  the new process is ready
  1  there is no such server, or the new process did not become ready
  2  the name is ambiguous`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, err := findInstance(args[0])
			if err != nil {
				return err
			}
			result, err := instance.Restart(cmd.Context(), reason)
			if err != nil {
				return fail(exitFailure, "restart %s: %w", args[0], err)
			}
			_, err = fmt.Fprintf(io.out, "%s: ready after %d ms (PID %d, restart #%d)\n", instance.Name, result.TookMS,
				result.ServerPID, result.Generation)
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "outlive restart", "why, for the audit log")
	return cmd
}
