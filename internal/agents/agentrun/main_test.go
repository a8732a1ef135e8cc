package agentrun

import (
	"context"
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

// attachTo makes the test binary somebody who joins the terminal at this socket.
const attachTo = "AGENTRUN_TEST_ATTACH"

func TestMain(m *testing.M) {
	if socket := os.Getenv(attachTo); socket != "" {
		os.Exit(attachMain(socket))
	}
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
		NoInput: os.Getenv("AGENTRUN_TEST_NOINPUT") != "", Pipes: os.Getenv("AGENTRUN_TEST_PIPES") != "", Terminal: os.Getenv("AGENTRUN_TEST_TERMINAL") != "",
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

func attachMain(socket string) int {
	l, err := Attach(context.Background(), AttachOptions{
		Socket: socket, In: os.Stdin, Out: os.Stdout, Who: "ann", ReadOnly: os.Getenv("AGENTRUN_TEST_READONLY") != "",
		Attached: func() { fmt.Fprintln(os.Stderr, "joined") },
	})
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "attach:", err)
		return 1
	case l.Exit != nil:
		fmt.Fprintln(os.Stderr, "the agent has ended:", l.Exit.Code)
		return l.Exit.Code
	case l.Signal != "":
		return 128 + l.Number
	}
	fmt.Fprintln(os.Stderr, "detached")
	return 0
}
