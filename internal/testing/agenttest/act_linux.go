package agenttest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// longest is how long an agent lives: nobody of a test that went wrong stays for ever, or ends by itself while its end is waited for.
const longest = 10 * time.Minute

// Act is an agent that says "ready" and lives on. It returns its exit status. Its kinds are
//
//	stubborn   it ignores SIGTERM
//	child      it has a stubborn child
//	away       it has one in a session of its own, whose parent is gone
//
// The numbers of those it has started stand behind "ready".
func Act(kinds []string) int {
	if path := os.Getenv(Starts); path != "" {
		AppendLine(path, fmt.Sprintf("%d %s", os.Getpid(), os.Getenv("PIV_AUTONOMOUS_PREAMBLE")))
	}
	line := "ready"
	for _, kind := range kinds {
		switch kind {
		case "stubborn":
			signal.Ignore(syscall.SIGTERM)
		case "child":
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), Role+"=agent stubborn", Starts+"=")
			if cmd.Start() != nil {
				return 3
			}
			line += " " + strconv.Itoa(cmd.Process.Pid)
		case "away":
			// A shell in between ends at once, so the grandchild's parent is init, and its session its own.
			script := Starts + `= ` + Role + `="agent stubborn" setsid "$0" </dev/null >/dev/null 2>&1 & echo $!`
			out, err := exec.Command("sh", "-c", script, os.Args[0]).Output()
			if err != nil {
				return 3
			}
			line += " " + strings.TrimSpace(string(out))
		}
	}
	fmt.Fprintln(os.Stdout, line)
	time.Sleep(longest)
	return 0
}

// AppendLine adds a line to a file that several processes write. What cannot be written is missed by the test that reads it.
func AppendLine(path, line string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.WriteString(line + "\n")
		_ = f.Close()
	}
}
