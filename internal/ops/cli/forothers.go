package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// forOthers annotates a verb that is done for other machines with the flags that it may have then.
const forOthers = "for-others"

// newForOthers is how this machine's member of a fleet has done what another machine asks for. Versions before have no such verb, and do nothing.
func newForOthers(io streams) *cobra.Command {
	var permissions bool
	cmd := &cobra.Command{
		Use:    "for-others -- VERB",
		Short:  "Do what another machine of the fleet asks for, if it is done for others",
		Hidden: true,
		Args:   takes(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := newRoot(io)
			before := root.PersistentPreRunE
			root.PersistentPreRunE = func(verb *cobra.Command, words []string) error {
				if err := doneForOthers(verb, words, permissions); err != nil {
					return fail(exitFailure, "%w", err)
				}
				return before(verb, words)
			}
			root.SetArgs(args)
			return root.ExecuteContext(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&permissions, "permissions", false, "others may answer what agents here ask for, and end them")
	return cmd
}

// doneForOthers refuses what is not done for other machines. What is done starts no program of their choice, and looks at no further machine.
func doneForOthers(verb *cobra.Command, words []string, permissions bool) (err error) {
	flags, done := verb.Annotations[forOthers]
	if !done {
		return fmt.Errorf("%s is not done for other machines", verb.CommandPath())
	}
	verb.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(strings.Fields(flags), f.Name) {
			err = fmt.Errorf("%s with --%s is not done for other machines", verb.CommandPath(), f.Name)
		}
	})
	if verb.Name() == "press" && !permissions && slices.Contains([]string{"allow", "deny", "stop"}, words[1]) {
		err = fmt.Errorf("%s is pressed on that machine only, or by its channels: it was joined without --permissions", words[1])
	}
	return err
}
