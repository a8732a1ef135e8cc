package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/ops/clients"
)

// unwrapFlags are the flags of `outlive unwrap` as they were given.
type unwrapFlags struct {
	clientFlags
	dryRun bool
}

func newUnwrap(io streams) *cobra.Command {
	var f unwrapFlags
	cmd := &cobra.Command{
		Use:   "unwrap [flags]",
		Short: "Take outlive out of AI clients' configurations again",
		Long: `Take back what outlive wrap did: each server is started by the client itself again. An entry that somebody has written
by hand stays, unless --server names it. What was changed in the files meanwhile stays. The change is shown as a diff;
with --dry-run it is only shown. A back-up that holds just what the file now holds again is removed.

EXIT STATUS
  0  done, also when there was nothing to do
  1  a client, server or file could not be found, read or written, or an entry not taken back
  2  a mistake in the command line`,
		Args: takes(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return f.editAll(io.out, fileEdit{done: "unwrapped", dryRun: f.dryRun, text: f.text, write: saveUnwrapped})
		},
	}
	f.define(cmd.Flags(), "", "also the files of the project in this directory (default: none)")
	cmd.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "show what would be done, and do nothing")
	return cmd
}

// saveUnwrapped writes the file, and removes the back-ups that it is equal to.
func saveUnwrapped(w io.Writer, file clients.File, text []byte) error {
	if err := atomicfile.Replace(file.Path, file.Text, text); err != nil {
		return perhapsRunning(err, "client")
	}
	dropped, err := atomicfile.DropBackups(file.Path, text)
	if err != nil {
		return err
	}
	for _, backup := range dropped {
		fmt.Fprintf(w, "%s: removed the back-up, the file is as it was: %s\n", file.Client.Name, backup)
	}
	for _, backup := range atomicfile.Backups(file.Path) {
		fmt.Fprintf(w, "%s: a back-up stays, since the file has other changes; it may hold secrets: %s\n", file.Client.Name, backup)
	}
	return nil
}

// text is a file without outlive.
func (f *unwrapFlags) text(file clients.File, only func(clients.Server) bool) ([]byte, []clients.Outcome, error) {
	var left []clients.Outcome
	text, outcomes, err := file.Client.Unwrap(file.Text, func(s clients.Server) bool {
		switch {
		case !only(s):
			return false
		case s.Gateway():
			left = append(left, clients.Outcome{Server: s, Why: "a gateway is taken out by hand; what outlive 0.1.0 has moved there stands in the .record.json beside its file"})
			return false
		case !s.Wrapped():
			return false
		case len(f.servers) == 0 && !s.ByWrap(labelOf):
			left = append(left, clients.Outcome{Server: s, Why: "not written by outlive wrap; outlive unwrap --server " + shellWord(s.Name) + " takes outlive out of it nevertheless"})
			return false
		}
		return true
	})
	return text, append(left, outcomes...), err
}
