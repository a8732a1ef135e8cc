package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/keep/child"
	"github.com/outlive-mcp/outlive/internal/ops/service"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
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
	service.SignalCrashes(os.Getenv)
	surviveBrokenPipes()
	defer child.EndKeeper()
	cobra.EnableCommandSorting = false // the most used commands of a group come first in the help
	io := streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	root := rootFor(io, args)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		completeWords(root)
	}
	root.SetArgs(args)
	return status(root.Execute(), os.Stderr)
}

// status prints err for people and returns its exit status.
func status(err error, to io.Writer) int {
	if err == nil {
		return 0
	}
	code := exitUsage // cobra's own errors are usage errors
	if withCode, ok := errors.AsType[*exitError](err); ok {
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

// asFailure gives exit status 1 to an error; nil stays nil.
func asFailure(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitFailure, err}
}

// Command returns the whole command line, for those who write it down.
func Command() *cobra.Command {
	cobra.EnableCommandSorting = false
	return newRoot(streams{in: os.Stdin, out: os.Stdout, err: os.Stderr})
}

// rootFor returns the commands that args may mean. A client starts "run" for each of its servers, which goes on as long as the
// client: such a process does without the other commands.
func rootFor(io streams, args []string) *cobra.Command {
	if len(args) == 0 || args[0] != "run" {
		return newRoot(io)
	}
	root := bareRoot(io)
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(newRun(io))
	return root
}

// bareRoot is the command line without its commands.
func bareRoot(io streams) *cobra.Command {
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
	return root
}

func newRoot(io streams) *cobra.Command {
	root := bareRoot(io)
	addGroup(root, "servers", "Servers:", newRun(io), newGateway(io), newLogin(io), newStatus(io), newRestart(io), newWait(), newLogs(io), newReload(io), newUpgrade(io))
	addGroup(root, "agents", "Agents:", newMonitor(io), newAgent(io), newHooks(io), newAck(io), newHeartbeat(io))
	addGroup(root, "seeing", "Servers and agents at a glance:", newDashboard(io), newTop(io), newWatchEvents(io), newMetrics(io), newTap(io), newFleet(io))
	addGroup(root, "setup", "Set-up:", newWrap(io), newUnwrap(io), newDoctor(io), newService(io), newDemo(io), newVersion(io))
	root.SetCompletionCommandGroupID("setup")
	root.SetHelpCommandGroupID("setup")
	hook := newHook(io)
	hook.Hidden = true // only agent CLIs call it
	root.AddCommand(hook, newHandoverAbility(io), newSharedDaemon(io), newPress(io), newForOthers(io))
	return root
}

// addGroup adds commands that the help shows below one heading.
func addGroup(root *cobra.Command, id, heading string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: heading})
	for _, c := range commands {
		c.GroupID = id
	}
	root.AddCommand(commands...)
}
