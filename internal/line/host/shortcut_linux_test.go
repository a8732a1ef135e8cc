package host

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/outlive-mcp/outlive/internal/keep/launcher"
	"github.com/outlive-mcp/outlive/internal/keep/supervise"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// A restart that is asked for while the server sleeps: its next start asks the launcher, which may find a newer version.
func TestARestartWhileItSleepsForgetsTheShortcut(t *testing.T) {
	argv, _ := mcptest.Command()
	k := keep(t, Options{Backend: backend.Options{Name: "srv", Command: argv, Lazy: true,
		Known: backend.Knowledge{Initialize: []byte(`{"protocolVersion":"2025-11-25","capabilities":{}}`)}}})
	dir := t.TempDir()
	k.do(func() {
		k.shortcut.command = &launcher.Command{Argv: argv, Dir: dir}
		if _, _, _, direct := k.commandLine(nil, false); !direct {
			t.Error("a crash would ask the launcher")
		}
	})
	if err := k.Restart(t.Context(), supervise.SourceControl, "a newer version"); err != nil {
		t.Error(err)
	}
	k.do(func() {
		if _, _, _, direct := k.commandLine(nil, false); direct {
			t.Error("the next start does not ask the launcher")
		}
	})
	k.end()
}

// A server that does not come up without its launcher gets it back, whoever ends it.
func TestADirectStartThatDoesNotComeUpEndsTheShortcut(t *testing.T) {
	const stays = "; while read -r line; do :; done"
	for name, script := range map[string]string{
		"it exits": "exit 1",
		"it refuses the handshake": `read -r line; id=${line#*\"id\":}; ` +
			`printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"not so"}}\n' "${id%%,*}"` + stays,
		"it closes its stdout": "exec >&-" + stays,
	} {
		t.Run(name, func(t *testing.T) {
			argv, _ := mcptest.Command()
			k := keep(t, Options{Backend: backend.Options{Name: "srv", Command: argv}})
			k.do(func() { k.shortcut.off = true }) // nobody looks for a launcher
			k.greet("serverInfo")
			dir := t.TempDir()
			k.do(func() {
				k.shortcut = shortcut{command: &launcher.Command{Argv: []string{"/bin/sh", "-c", script}, Dir: dir}}
			})
			k.killServing()
			k.await(event.LauncherKept)
			k.list(10)
			k.end()
		})
	}
}

// Where a server was seen behind its launcher, an installation can be told from a start that hangs.
func TestInstallationsAreSeenWhereServersAre(t *testing.T) {
	argv, _ := mcptest.Command()
	npx := filepath.Join(t.TempDir(), "npx") // without npm's title, as if it did not run yet
	if err := os.Symlink(argv[0], npx); err != nil {
		t.Fatal(err)
	}
	argv[0] = npx
	k := keep(t, Options{Backend: backend.Options{Name: "srv", Command: argv}})
	k.do(func() { k.shortcut.off = true }) // nobody looks for a launcher
	k.greet("serverInfo")
	for _, c := range []struct {
		found           error
		installing, off bool
	}{
		{launcher.ErrNone, false, true}, {launcher.ErrNoServer, false, true}, {launcher.ErrSeveral, true, true},
		{launcher.ErrUnusable, true, true}, {launcher.ErrGone, true, false},
	} {
		k.do(func() {
			k.shortcut = shortcut{}
			k.foundShortcut(launcher.Command{}, c.found)
			if got := k.Backend.Serving().Installing(); got != c.installing || k.shortcut.off != c.off {
				t.Errorf("%v: installing %v, want %v; the shortcut is off: %v, want %v", c.found, got, c.installing, k.shortcut.off, c.off)
			}
		})
	}
	k.end()
}
