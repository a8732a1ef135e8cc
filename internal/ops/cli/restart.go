package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/view/control"
)

func newRestart(io streams) *cobra.Command {
	var reason string
	var patience time.Duration
	cmd := &cobra.Command{
		Use:   "restart NAME",
		Short: "Restart one server; return when the new one is ready",
		Long: `Restart the server NAME and return when the new process is ready. The client behind it notices nothing.
A server behind a gateway is GATEWAY/SERVER, or just SERVER where nothing else is called so; all its processes are replaced.
Where several servers have one name, say NAME@PID with the PID of its outlive.

EXIT STATUS
  0  the new process is ready
  1  no such server, or the new process did not become ready
  2  the name is ambiguous`,
		Args:              takes(1, 1),
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, err := findInstance(args[0])
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), patience)
			defer cancel()
			result, err := instance.Restart(ctx, reason)
			if err != nil {
				return fail(exitFailure, "restart %s: %w", args[0], err)
			}
			_, err = fmt.Fprintln(io.out, restarted(instance, result))
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "outlive restart", "why, for the audit log")
	cmd.Flags().DurationVar(&patience, "timeout", 3*time.Minute, "how long to wait for the new process")
	return cmd
}

// restarted tells of a restart that went well.
func restarted(i control.Instance, r control.Result) string {
	name := i.Name
	if i.Server != "" {
		name += "/" + i.Server
	}
	switch {
	case i.Server != "" && r.Processes == 0:
		return name + ": nothing runs; it starts when it is needed"
	case r.Processes > 1:
		return fmt.Sprintf("%s: %d processes ready after %d ms", name, r.Processes, r.TookMS)
	case r.ServerPID == 0:
		return fmt.Sprintf("%s: connected again after %d ms", name, r.TookMS)
	case r.Unasked:
		return fmt.Sprintf("%s: started after %d ms (PID %d, restart #%d); no client has spoken to it yet", name, r.TookMS, r.ServerPID, r.Generation)
	}
	return fmt.Sprintf("%s: ready after %d ms (PID %d, restart #%d)", name, r.TookMS, r.ServerPID, r.Generation)
}
