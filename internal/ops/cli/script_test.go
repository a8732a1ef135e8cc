//go:build unix

package cli

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// scriptPatience is how long a status may take in a script: dozens of programs share the machine, and most steps ask once.
const scriptPatience = 10 * time.Second

func TestMain(m *testing.M) {
	mcptest.Reexec()
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for our children: a second at each exit otherwise, with the detector
	// A script mostly waits for processes; -parallel on the command line wins.
	if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){
		"outlive":    func() { askPatience = scriptPatience; os.Exit(Main(os.Args[1:])) },
		"mcp-server": func() { os.Exit(mcptest.ServerMain(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
		"request":    func() { os.Exit(requestMain()) },

		"fleet-member": func() { os.Exit(memberMain()) },
	})
}

// TestScript runs testdata/script: the command line as a user and a client see it. Besides what testscript has there are
//
//	exits CODE COMMAND…    runs COMMAND and wants this exit status
//	client FILE COMMAND…   plays the dialogue FILE with COMMAND, see dialogue_test.go
//
// and the programs outlive, mcp-server, the scripted server of package mcptest, request, which speaks HTTP to a gateway, and fleet-member,
// a fleet of one machine for gateways. Nothing a script does reaches the user's own directories.
func TestScript(t *testing.T) {
	end, _ := t.Deadline()
	testscript.Run(t, testscript.Params{
		Dir:                 "../../../testdata/script",
		RequireExplicitExec: true,
		Deadline:            end.Add(-time.Minute), // a command that hangs ends here, and says where it was
		Setup: func(env *testscript.Env) error {
			for name, dir := range map[string]string{"HOME": "home", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config"} {
				env.Setenv(name, filepath.Join(env.WorkDir, dir))
			}
			env.Setenv("AT_ONCE", fmt.Sprint(tier.Limit(time.Second).Seconds())) // for timeout(1), of what must not be waited for
			env.Setenv("GORACE", "atexit_sleep_ms=0")                            // a second at each exit otherwise, when this binary has the detector
			// The path of a Unix socket is short.
			run, err := os.MkdirTemp("", "out")
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(run) })
			env.Defer(func() { logErrors(env) })
			env.Setenv("XDG_RUNTIME_DIR", run)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"client": client,
		},
	})
}

// logErrors shows what the background commands of a failed script wrote to *.err: among it the goroutines of one that hung.
func logErrors(env *testscript.Env) {
	t, ok := env.T().(testing.TB)
	if !ok || !t.Failed() {
		return
	}
	files, _ := filepath.Glob(filepath.Join(env.WorkDir, "*.err"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		t.Logf("%s: %s (%v)", filepath.Base(file), text, err)
	}
}

// exits runs a command and wants a certain exit status.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if code != want {
		ts.Fatalf("exit status %d, want %d", code, want)
	}
}
