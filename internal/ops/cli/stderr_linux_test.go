package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// burstLines is how many lines a burst has, some 10 MB.
const burstLines = 300_000

// burst is a shell command that writes a burst to stderr.
var burst = fmt.Sprintf(`seq -f 'line %%.0f of a server that has much to tell' 1 %d >&2`, burstLines)

// burstLine is one of its lines.
func burstLine(n int) string { return fmt.Sprintf("line %d of a server that has much to tell", n) }

// checkBurst wants every line of the burst in text, in order.
func checkBurst(t *testing.T, from io.Reader) {
	t.Helper()
	n, odd := 1, ""
	for lines := bufio.NewScanner(from); lines.Scan(); {
		switch text := lines.Text(); {
		case text == burstLine(n):
			n++
		case strings.HasPrefix(text, "line ") || strings.Contains(text, "missing here"):
			odd = text
		}
	}
	if n <= burstLines || odd != "" {
		t.Errorf("%d of %d lines are there in their order; out of it: %q", n-1, burstLines, odd)
	}
}

// writesBurst runs a server that writes a burst and ends, with a client that stays until then: a server whose client has left is
// stopped, however much it has to tell.
func (u *unread) writesBurst(stderr io.Writer) {
	u.t.Helper()
	stdin, client, err := os.Pipe()
	if err != nil {
		u.t.Fatal(err)
	}
	defer stdin.Close()
	defer client.Close()
	cmd := exec.Command(u.program, "run", "--name", "burst", "--", "sh", "-c", burst)
	cmd.Env = append(os.Environ(), "OUTLIVE_STATE_HOME="+u.dir)
	cmd.Stdin, cmd.Stderr = stdin, stderr
	if err := cmd.Run(); err != nil {
		u.t.Error(err)
	}
}

// TestStderrBurstIsWhole: a plain file and a pipe that is read get all of a burst, and so does the kept file, also when
// the server ends right after it.
func TestStderrBurstIsWhole(t *testing.T) {
	t.Run("file", func(t *testing.T) {
		u := newUnread(t)
		path := filepath.Join(u.dir, "stderr")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		u.writesBurst(f)
		_ = f.Close()
		for _, name := range []string{path, ""} {
			if name == "" {
				t.Log("the kept file")
				found, err := filepath.Glob(filepath.Join(u.dir, "log", "burst.*"))
				if err != nil || len(found) == 0 {
					t.Fatalf("%v %v", found, err)
				}
				var all []io.Reader // the older ones, which the time in their names orders, before the one without
				for _, one := range found {
					text, err := os.ReadFile(one)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, bytes.NewReader(text))
				}
				checkBurst(t, io.MultiReader(all...))
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			checkBurst(t, bytes.NewReader(text))
		}
	})
	t.Run("pipe", func(t *testing.T) {
		u := newUnread(t)
		var text bytes.Buffer
		u.writesBurst(&text)
		checkBurst(t, &text)
	})
}

// TestNobodyReadsABurst: a server that floods a stderr which nobody reads is held up for a moment, not for ever, and who
// reads on later is told how much is missing.
func TestNobodyReadsABurst(t *testing.T) {
	u := newUnread(t)
	u.start(true, "run", "--", "sh", "-c", burst+`; read -r l; echo '{"jsonrpc":"2.0","id":0,"result":{"serverInfo":"none"}}'; cat >&2`)
	begun := time.Now()
	_ = u.asks(initializeLine)
	t.Logf("answered after %v", time.Since(begun))
	told := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(u.listens)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "missing here") {
				told <- lines.Text()
			}
		}
	}()
	select {
	case text := <-told:
		t.Log(text)
		if !regexp.MustCompile(`\[SUPERVISOR\] WARNING: \d{5,} lines \(\d{7,} bytes\) are missing here: stderr was not read in time$`).MatchString(text) {
			t.Errorf("told: %s", text)
		}
	case <-time.After(dialoguePatience):
		t.Error("nobody tells that something is missing")
	}
	_ = u.in.Close()
	u.ends()
}

// TestLastWordsAreKept: what a server wrote last before it was killed in the middle of a burst is in outlive logs.
func TestLastWordsAreKept(t *testing.T) {
	u := newUnread(t)
	u.start(true, "run", "--name", "last", "--", "sh", "-c", "if [ -e again ]; then exec cat; fi; touch again; "+burst+"; echo last words >&2; kill -9 $$")
	restarted := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(u.listens); lines.Scan(); {
			if strings.Contains(lines.Text(), "Starting MCP server (restart #1)") {
				close(restarted)
			}
		}
	}()
	select {
	case <-restarted:
	case <-time.After(dialoguePatience):
		t.Fatal("it is not restarted")
	}
	var kept []byte
	await.Value(t, "the last words are kept", func() (string, bool) { // another process writes them
		ask := exec.Command(u.program, "logs", "last")
		ask.Env = u.cmd.Env
		out, err := ask.Output()
		text, note, _ := bytes.Cut(out, []byte("[outlive] ")) // what became of the process stands behind its words
		kept = text
		return fmt.Sprintf("%v: …%s", err, out[max(0, len(out)-200):]),
			bytes.Contains(note, []byte("Server crashed")) && bytes.HasSuffix(text, []byte(burstLine(burstLines)+"\nlast words\n"))
	})
	checkBurst(t, bytes.NewReader(kept))
	_ = u.cmd.Process.Signal(os.Interrupt)
	u.ends()
}

// TestUpgradeWhileStderrStalls: the reader of a stderr that nobody takes further is not an obstacle to an upgrade.
func TestUpgradeWhileStderrStalls(t *testing.T) {
	u := newUnread(t)
	u.start(true, "run", "--name", "up", "--", "sh", "-c", "("+burst+")& exec "+u.program+" "+mcptest.ServerArg)
	if text := u.asks(initializeLine); !strings.Contains(text, `"serverInfo"`) {
		t.Fatalf("answer to initialize: %s", text)
	}
	if err := u.cmd.Process.Signal(unix.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the upgrade", func() bool { return u.upgrades() > 0 })
	_ = u.in.Close()
	u.ends()
}
