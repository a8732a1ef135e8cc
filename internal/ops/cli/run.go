package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

const runLong = `Run CMD and keep it alive. outlive speaks for it on stdin and stdout: a client that starts "outlive run -- CMD"
instead of CMD never loses its server.

With a URL in place of a command the server is elsewhere: outlive reaches it by Streamable HTTP, or by the older HTTP+SSE, and
keeps the connection alive. If the server wants a login, its page is opened in the browser; "outlive login URL" does that from
another terminal. Behind a URL flags may follow.

EXIT STATUS
  0      the server ended by itself with 0, or the client closed the connection, or SIGTERM/SIGINT
  1      outlive itself failed
  2      the command line is wrong
  126    CMD cannot be executed
  127    CMD was not found

EXIT CODES OF THE SERVER
  0      it is done: outlive ends, too
  42     it wants to be restarted (at most once a second); --restart-on adds codes
  other  it crashed: it is restarted after a delay (--backoff); --fail-on names codes that are not worth a retry

The server may also print __MCP_RESTART_REQUEST__ on its stderr, the agent may call the tool restart_server, and a
person may send SIGHUP or run "outlive restart NAME". SIGUSR2 or "outlive upgrade NAME" replaces outlive itself by the
version that is on disk now, and restarts the server; the client does not notice.`

func newRun(io streams) *cobra.Command {
	f := newRunFlags()
	var far remoteFlags
	cmd := &cobra.Command{
		Use:         "run [flags] -- CMD [ARG…] | URL",
		Annotations: map[string]string{keepsAlive: "yes"},
		Short:       "Keep one MCP server alive behind my stdin and stdout: a command, or a URL",
		Long:        runLong,
		Example: "  outlive run -- npx -y @modelcontextprotocol/server-everything\n  outlive run --name db --audit audit.log -- python -m my_server\n" +
			"  outlive run https://mcp.linear.app/mcp\n  outlive run https://mcp.example/mcp --header 'Authorization: Bearer ${TOKEN}'",
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("run: no command given; write: outlive run -- CMD [ARG…], or: outlive run URL")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if isURL(args[0]) {
				if err := parseBehindURL(cmd, args[1:]); err != nil {
					return err
				}
			}
			settings, err := f.resolve(args, &far, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if only, err := asked(io.out); only {
				return err
			}
			if f.shared {
				if err := f.share(settings, cmd.Flags()); err != nil {
					return err
				}
			}
			if f.mode == "inherit" {
				return runInherit(io, settings)
			}
			return runProxy(io, settings)
		},
	}
	fl := cmd.Flags()
	fl.SetInterspersed(false) // flags after CMD are CMD's
	define(fl, f.table())
	define(fl, far.table())
	return cmd
}
