package agentrun

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// wrapIn makes the test binary a wrapper, with this home and the command line as the agent's command.
const wrapIn = "AGENTRUN_TEST_HOME"

func TestMain(m *testing.M) {
	if home := os.Getenv(wrapIn); home != "" {
		os.Exit(wrapperMain(home))
	}
	// Under nohup everything we start would ignore a hangup, too; what is handled is not ignored by a child.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	goleak.VerifyTestMain(m)
}

func wrapperMain(home string) int {
	exit, err := Run(Options{
		Home: home, Agent: "shop", Command: os.Args[1:], Environ: os.Environ(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		NoInput: os.Getenv("AGENTRUN_TEST_NOINPUT") != "", Pipes: os.Getenv("AGENTRUN_TEST_PIPES") != "",
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "wrapper:", err)
	}
	var start *StartError
	switch {
	case errors.As(err, &start):
		return start.Code
	case exit == nil:
		return 1
	}
	return exit.Code
}
