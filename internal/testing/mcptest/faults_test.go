package mcptest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestProbeBehaviours(t *testing.T) {
	t.Run("ok", func(t *testing.T) {
		c := inProcess(t, "-probe", "ok")
		if raw, err := c.Call(testContext(t), "server/discover", nil); err != nil || !strings.Contains(string(raw), "supportedVersions") {
			t.Errorf("%s %v", raw, err)
		}
		handshake(t, c)
	})
	t.Run("error", func(t *testing.T) {
		c := inProcess(t)
		_, err := c.Call(testContext(t), "server/discover", nil)
		wantCode(t, "discover", err, codeNoMethod)
		handshake(t, c)
	})
	t.Run("silent", func(t *testing.T) {
		c := inProcess(t, "-probe", "silent")
		p := c.Go("server/discover", nil)
		handshake(t, c)
		if got := c.Unanswered(); !slices.Equal(got, []string{p.ID}) {
			t.Errorf("unanswered %v, want the probe", got)
		}
	})
	t.Run("exit", func(t *testing.T) {
		p, stderr := spawn(t, "-probe", "exit", "-exit-code", "5")
		if _, err := p.Call(testContext(t), "server/discover", nil); !errors.Is(err, ErrClosed) {
			t.Errorf("discover: %v", err)
		}
		wantExit(t, p, 5)
		if !strings.Contains(stderr.String(), "server/discover") {
			t.Errorf("stderr: %s", stderr)
		}
	})
}

func TestStartsThatFail(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, stderr := spawn(t, "-fail-start-file", broken)
	wantExit(t, p, 3)
	if n := strings.Count(stderr.String(), "\n"); n != 2 || !strings.Contains(stderr.String(), broken) {
		t.Errorf("%d lines on stderr, want two that name the file: %s", n, stderr)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	p, _ = spawn(t, "-fail-start-file", broken)
	handshake(t, p.Client)

	starts := filepath.Join(dir, "starts")
	for i, want := range []int{3, 3, 0} {
		p, _ := spawn(t, "-no-start", "2", "-starts", starts)
		if code, err := p.Stop(testContext(t)); err != nil || code != want {
			t.Errorf("start %d: exit %d %v, want %d", i, code, err, want)
		}
	}
	if got := len(fileLines(t, starts)); got != 3 {
		t.Errorf("%d starts counted, want 3", got)
	}
}

// killed is the exit status of a killed process in os/exec.
func killed() int {
	if runtime.GOOS == "windows" {
		return 1
	}
	return -1
}

func TestDeaths(t *testing.T) {
	for _, tc := range []struct {
		name  string
		flags []string
		call  func(c *Client) *Pending
		code  int
		last  string // the last line on stdout holds this; "" means it is the answer to initialize
	}{
		{"tool crash", nil, toolGo("crash", nil), killed(), ""},
		{"crash after", []string{"-crash-after", "2"}, toolGo("echo", nil), killed(), ""},
		{"crash on method", []string{"-crash-on", "tools/list"}, methodGo("tools/list"), killed(), ""},
		{"half a line", []string{"-last-line", "half"}, toolGo("crash", nil), killed(), `"id":2`},
		{"unterminated", []string{"-last-line", "unterminated"}, toolGo("crash", nil), killed(), `last words`},
		{"whole", []string{"-last-line", "whole"}, toolGo("crash", nil), killed(), `last words`},
		{"die in a tool", nil, toolGo("echo", object{"die": "after"}), killed(), ""},
		{"exit", nil, toolGo("exit", object{"code": 42}), 42, `exiting with 42`},
		{"silent exit", nil, toolGo("exit", object{"code": 7, "silent": true}), 7, ""},
		{"exit after", []string{"-exit-after", "2", "-exit-code", "9"}, toolGo("echo", object{"text": "bye"}), 9, "bye"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, _ := spawn(t, tc.flags...)
			handshake(t, p.Client)
			tc.call(p.Client)
			wantExit(t, p, tc.code)
			<-p.Done()
			lines := p.Lines()
			if tc.last == "" {
				tc.last = "protocolVersion"
			}
			if last := lines[len(lines)-1]; !strings.Contains(last, tc.last) {
				t.Errorf("last line %q, want %q in it", last, tc.last)
			}
		})
	}
}

func toolGo(name string, args any) func(*Client) *Pending {
	return func(c *Client) *Pending { return c.Go("tools/call", ToolParams(name, args)) }
}

func methodGo(method string) func(*Client) *Pending {
	return func(c *Client) *Pending { return c.Go(method, nil) }
}

// What -crash-once and die_once leave alone on the second life.
func TestDiesOnlyOnce(t *testing.T) {
	once := filepath.Join(t.TempDir(), "once")
	count := filepath.Join(t.TempDir(), "count")
	args := object{"path": count, "line": "x", "die": "after", "die_once": once}
	p, _ := spawn(t)
	handshake(t, p.Client)
	p.Go("tools/call", ToolParams("bump", args))
	<-p.Exited()
	p, _ = spawn(t)
	handshake(t, p.Client)
	mustTool(t, p.Client, "bump", args)
	if got := len(fileLines(t, count)); got != 2 {
		t.Errorf("%d executions, want 2: one of each life", got)
	}

	mark := filepath.Join(t.TempDir(), "mark")
	p, _ = spawn(t, "-crash-on", "ping", "-crash-once", mark)
	p.Go("ping", nil)
	<-p.Exited()
	p, _ = spawn(t, "-crash-on", "ping", "-crash-once", mark)
	if _, err := p.Call(testContext(t), "ping", nil); err != nil {
		t.Errorf("second life: %v", err)
	}
}

func TestIgnoresTermAndEOF(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGTERM here")
	}
	p, _ := spawn(t, "-ignore-term", "-ignore-eof")
	handshake(t, p.Client)
	if err := p.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	mustTool(t, p.Client, "echo", nil)
	slow := p.Go("tools/call", ToolParams("slow", object{"ms": 50}))
	if err := p.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := slow.Wait(testContext(t)); err != nil {
		t.Fatalf("answer after EOF: %v", err)
	}
	select {
	case <-p.Exited():
		t.Error("gone after EOF")
	default:
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
}

func TestStrictExits(t *testing.T) {
	for name, line := range map[string]string{
		"batch":                `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
		"garbage":              `hello`,
		"no version":           `{"id":1,"method":"ping"}`,
		"blank at the end":     `{"jsonrpc":"2.0","id":1,"method":"ping"} `,
		"bool id":              `{"jsonrpc":"2.0","id":true,"method":"ping"}`,
		"fraction id":          `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
		"duplicate initialize": `{"jsonrpc":"2.0","id":9,"method":"initialize","params":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p, stderr := spawn(t, "-strict")
			handshake(t, p.Client)
			if err := p.Send(line); err != nil {
				t.Fatal(err)
			}
			wantExit(t, p, 1)
			if !strings.Contains(stderr.String(), "strict:") {
				t.Errorf("stderr: %s", stderr)
			}

			lenient := ready(t)
			if err := lenient.Send(line); err != nil {
				t.Fatal(err)
			}
			mustTool(t, lenient, "echo", nil)
		})
	}
}

// A held stdout remains open after the process's end; the flood is complete.
func TestHoldAndFlood(t *testing.T) {
	p, stderr := spawn(t, "-hold-stdout", "1s", "-stderr-flood", "200000")
	handshake(t, p.Client)
	p.Go("tools/call", ToolParams("crash", nil))
	<-p.Exited()
	select {
	case <-p.Done():
		t.Error("stdout ended with the process")
	default:
	}
	<-p.Done()
	wantExit(t, p, killed())
	if n := len(stderr.String()); n != 200000 {
		t.Errorf("%d bytes on stderr, want 200000", n)
	}
}

func TestSlowStartAndLog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	p, _ := spawn(t, "-slow-start", "20ms", "-log", log)
	const odd = `  {"jsonrpc":"2.0","method":"x","params":{"a":1.50}}`
	if err := p.Send(odd); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Stop(testContext(t)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d\t%s", p.PID(), odd)
	if got := fileLines(t, log); !slices.Equal(got, []string{want}) {
		t.Errorf("log %q, want %q", got, want)
	}
}
