package cli

import "github.com/spf13/cobra"

func newLogs(io streams) *cobra.Command {
	var follow bool
	cmd := &cobra.Command{
		Use:   "logs NAME",
		Short: "Show a server's stderr, kept across its restarts",
		Long: `Show what the server NAME has written to its stderr since its outlive started. The file itself is named by
"outlive status --json" (log_path) and outlasts the run. A server behind a gateway is GATEWAY/SERVER, or just SERVER
where nothing else is called so.

EXIT STATUS
  0  shown
  1  there is no such server
  2  the name is ambiguous`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, err := findInstance(args[0])
			if err != nil {
				return err
			}
			if err := instance.Logs(cmd.Context(), io.out, follow); err != nil {
				return fail(exitFailure, "logs %s: %w", args[0], err)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on until interrupted")
	return cmd
}
