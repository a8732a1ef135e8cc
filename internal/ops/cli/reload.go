package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newReload(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "reload [NAME]",
		Short: "Have a running gateway read its configuration again",
		Long: `Have the gateway NAME (default: the only one that runs) read its configuration again. Servers that are configured
differently are replaced once their requests are answered; the others are not touched. If the configuration has mistakes,
they are shown, and what was there before goes on.

EXIT STATUS
  0  the configuration is in use
  1  no such gateway, or the configuration has mistakes
  2  the name is ambiguous`,
		Args:              takes(0, 1),
		ValidArgsFunction: completeRunning,
		RunE: func(cmd *cobra.Command, args []string) error {
			instance, err := findGateway(strings.Join(args, "")) // one at most
			if err != nil {
				return err
			}
			if err := instance.Reload(cmd.Context()); err != nil {
				return fail(exitFailure, "reload %w", err)
			}
			_, err = fmt.Fprintf(io.out, "%s: configuration read\n", instance.Name)
			return err
		},
	}
}
