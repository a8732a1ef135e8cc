package mcptest

import (
	"io"
	"os"
	"slices"
	"strconv"
	"time"
)

const (
	// EnvMode makes [Reexec] turn the process into a helper. Values: "server".
	EnvMode = "OUTLIVE_MCPTEST"
	// ServerArg does the same as the first argument. It allows a relay between test and server to be the same binary:
	// an environment variable would turn the relay into the server, too.
	ServerArg = "outlive-mcptest-server"
	// holdArg starts the grandchild of -hold-stdout: it sleeps for the number of nanoseconds in the next argument.
	holdArg = "outlive-mcptest-hold"
)

// Reexec turns this process into the scripted server if the environment or the first argument says so, and then never
// returns. Otherwise it does nothing. Call it first in TestMain, and in a program that offers [Command].
func Reexec() {
	args := os.Args[1:]
	if len(args) > 1 && args[0] == holdArg {
		hold(args[1])
		os.Exit(0)
	}
	named := len(args) > 0 && args[0] == ServerArg
	if !named && os.Getenv(EnvMode) != "server" {
		return
	}
	if named {
		args = args[1:]
	}
	os.Exit(ServerMain(args, os.Stdin, os.Stdout, os.Stderr))
}

func hold(nanoseconds string) {
	n, err := strconv.ParseInt(nanoseconds, 10, 64)
	if err != nil {
		return
	}
	time.Sleep(time.Duration(n))
}

// Command returns the command line and the additional environment that start this same binary as the scripted server
// with the given flags. The command line is sufficient, so env is empty; callers append it to the child's
// environment, in case a later version needs it. The binary must call [Reexec].
func Command(flags ...string) (argv []string, env []string) {
	exe, err := os.Executable()
	if err != nil {
		exe = os.Args[0]
	}
	return append([]string{exe, ServerArg}, slices.Clone(flags)...), nil
}

// ServerMain runs the scripted server until stdin ends or a fault ends it, and returns the exit status: 0 after EOF,
// 2 for a wrong flag, 3 for a start that the flags made fail, otherwise the status from -exit-code or the tool exit.
func ServerMain(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if err != nil {
		return 2
	}
	s, code := newServer(o, stdin, stdout, stderr)
	if s == nil {
		return code
	}
	return s.run()
}
