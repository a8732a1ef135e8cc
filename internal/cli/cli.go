package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/child"
	"github.com/outlive-mcp/outlive/internal/logline"
	"github.com/outlive-mcp/outlive/internal/mcptest"
)

// Exit statuses that mean something (sysexits and the shell's conventions).
const (
	exitFailure       = 1
	exitUsage         = 2
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitError is an error with the status outlive leaves with. Its text is shown unless it is empty.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// streams are a command's standard streams.
type streams struct {
	in  *os.File
	out *os.File
	err *os.File
}

// Main runs the command line args, without the program's name, and returns the exit status.
func Main(args []string) int {
	mcptest.Reexec() // as the built-in server of the demo
	surviveBrokenPipes()
	defer child.EndKeeper()
	io := streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	root := newRoot(io)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeWords(root)
	}
	root.SetArgs(args)
	return status(root.Execute(), os.Stderr)
}

// status prints err as a person wants to read it and returns the exit status it stands for.
func status(err error, to io.Writer) int {
	if err == nil {
		return 0
	}
	code := exitUsage // what cobra itself complains about is a mistake in the command line
	var withCode *exitError
	if errors.As(err, &withCode) {
		code = withCode.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(logline.NewScreen(to), "outlive: "+text) // it may quote a server
	}
	return code
}

func fail(code int, format string, args ...any) error {
	return &exitError{code: code, err: fmt.Errorf(format, args...)}
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "outlive",
		Short: "Keep MCP servers alive behind an AI client",
		Long: `outlive stands between an AI client and its MCP server. The server may crash, be killed, exit for new
code or be restarted by the agent itself: the client keeps its connection, its session and its tools.

Put it in front of any stdio server's command:

    outlive run -- npx -y @modelcontextprotocol/server-everything

See it work, with nothing else installed:

    outlive demo`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Annotations[keepsAlive] == "" {
				dieOfBrokenPipes()
			}
			return checkHomeless()
		},
	}
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.SetVersionTemplate("outlive {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(io), newGateway(io), newStatus(io), newDoctor(io), newWrap(io), newUnwrap(io), newRestart(io), newReload(io), newUpgrade(io), newHandoverAbility(io), newLogs(io), newDemo(io), newMonitor(io), newHook(io), newHooks(io), newAgent(io), newHeartbeat(io), newAck(io), newService(io), newVersion(io))
	return root
}
