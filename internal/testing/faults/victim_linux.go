package faults

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// VictimArg is the first argument that turns a program into a victim.
const VictimArg = "outlive-victim"

// lifetime ends victims that nobody ends.
const lifetime = 10 * time.Minute

// upFD is the descriptor on which a descendant says that it is up.
const upFD = 3

// noRaceExit keeps binaries with the race detector from sleeping a second at each exit.
const noRaceExit = "GORACE=atexit_sleep_ms=0"

// VictimIfAsked turns this process into a victim if its first argument is [VictimArg], and then does not return.
// Otherwise it does nothing. Call it before anything else.
func VictimIfAsked() {
	if len(os.Args) > 2 && os.Args[1] == VictimArg {
		os.Exit(victim(os.Args[2], os.Args[3:]))
	}
}

// command is the command line of a server of this shape. The victim is this same binary or another one that calls
// [VictimIfAsked]; the token is an argument of every process; flags are those of the scripted server (package mcptest).
func (s Shape) command(victim []string, token string, flags ...string) []string {
	if s.deaf {
		flags = append(flags, "-ignore-term", "-ignore-eof")
	}
	argv := append(slices.Clone(victim), VictimArg, "server", token, strings.Join(s.brood, ","), fmt.Sprint(s.deaf))
	argv = append(argv, flags...)
	shell := []string{"/bin/sh", "-c", `"$0" "$@"; exit $?`} // there is more to do, so the shell stays
	switch s.wrap {
	case "shell":
		return append(shell, argv...)
	case "launcher":
		return append(append(slices.Clone(victim), VictimArg, "launcher"), append(shell, argv...)...)
	}
	return argv
}

// victim is the process of one role.
func victim(role string, args []string) int {
	switch role {
	case "server":
		return server(args)
	case "launcher":
		c := exec.Command(args[0], args[1:]...)
		c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
		return codeOf(c.Run())
	case "nopidfd":
		return withoutPidfd(args)
	case roleDaemon:
		return fork(args)
	}
	if slices.Contains(args, "deaf") {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	}
	_ = os.NewFile(upFD, "up").Close()
	time.Sleep(lifetime)
	return 0
}

func codeOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return 1
	}
	return 0
}

// server starts its brood and is the scripted server then. The arguments are token, brood, deaf, and the server's flags.
func server(args []string) int {
	token, brood, deaf, flags := args[0], args[1], args[2] == "true", args[3:]
	time.AfterFunc(lifetime, func() { os.Exit(0) })
	for role := range strings.SplitSeq(brood, ",") {
		role, cleared := strings.CutSuffix(role, clearedSuffix)
		if err := descend(role, token, cleared, deaf); err != nil {
			fmt.Fprintln(os.Stderr, "victim:", err)
			return 1
		}
	}
	return mcptest.ServerMain(flags, os.Stdin, os.Stdout, os.Stderr)
}

// descend starts a descendant and waits until it is up. It says whose it is, by the server's pid.
func descend(role, token string, cleared, deaf bool) error {
	args := []string{VictimArg, role, token, fmt.Sprintf("%s%d", ofServer, os.Getpid())}
	if deaf {
		args = append(args, "deaf")
	}
	c := exec.Command("/proc/self/exe", args...)
	c.Args[0] = os.Args[0]
	if c.Env = os.Environ(); cleared {
		c.Env = []string{noRaceExit}
	}
	if role == roleHelper { // as workers do
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: role != roleHelper}
	return startAndHear(c)
}

// startAndHear starts c and waits until it says that it is up.
func startAndHear(c *exec.Cmd) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	c.ExtraFiles = []*os.File{w}
	err = c.Start()
	_ = w.Close()
	if err != nil {
		return err
	}
	_, _ = bufio.NewReader(r).ReadByte() // its end: it has closed it, or is dead
	return nil
}

// fork is the middle process of a daemon: it starts the last one and is gone.
func fork(args []string) int {
	c := exec.Command("/proc/self/exe", append([]string{VictimArg, "sleeper"}, args...)...)
	c.Args[0] = os.Args[0]
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return codeOf(startAndHear(c))
}
