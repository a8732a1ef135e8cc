package monitor

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
)

// noteDown is what the test binary is told to do in place of an agent that can be talked to, see [noting].
const noteDown = "note-down"

// noting is a command, as it stands in a registry, that writes its arguments to the end of a file, each with a | behind it. A
// relative path begins in the agent's directory, which it takes from PWD, as OpenCode does.
func noting(path string, args ...string) string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return "['" + strings.Join(append([]string{self, noteDown, path}, args...), "', '") + "']"
}

func note(path string, args []string) int {
	if !filepath.IsAbs(path) {
		path = filepath.Join(os.Getenv("PWD"), path)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 1
	}
	defer f.Close()
	if _, err := io.WriteString(f, strings.Join(args, "|")+"|"); err != nil {
		return 1
	}
	return 0
}

// stay is what the test binary is told to do in place of a process that lives until the test ends, see [stays].
const stay = "stay"

// stays starts a process that lives until the test ends, and returns its number.
func stays(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(os.Args[0], stay)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

func TestMain(m *testing.M) {
	if actor := os.Getenv(agenttest.Role); actor != "" {
		os.Exit(act(actor))
	}
	if len(os.Args) > 2 && os.Args[1] == noteDown {
		os.Exit(note(os.Args[2], os.Args[3:]))
	}
	if len(os.Args) == 2 && os.Args[1] == stay {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(inMemory(func() int { return verifyNoLeaks(m) }))
}
