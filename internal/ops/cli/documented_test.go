//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

// documentedPatience is how long a command of the documentation may take, or take to say what it is waited for.
const documentedPatience = 2 * time.Minute

// manner is how a command of the documentation is run: to its end with status 0, unless testdata/docs/commands.txtar says
// something else.
type manner struct {
	until string // it goes on until it has printed this, and is then interrupted
	by    string // it is run by this file
	why   string // it is not run at all
}

// manners reads that list: sections of commands below how they are run.
func manners(t *testing.T) map[string]manner {
	t.Helper()
	list, err := txtar.ParseFile(filepath.Join("..", "..", "..", "testdata", "docs", "commands.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]manner{}
	for _, section := range list.Files {
		var m manner
		word, rest, _ := strings.Cut(section.Name, ": ")
		switch word {
		case "until":
			m.until = rest
		case "run by":
			m.by = rest
		case "not run":
			m.why = rest
		default:
			t.Fatalf("-- %s --: want until: TEXT, run by: FILE, or not run: REASON", section.Name)
		}
		for command := range strings.Lines(string(section.Data)) {
			command = strings.TrimSpace(command)
			if _, twice := all[command]; twice {
				t.Errorf("%s is there twice", command)
			}
			if command != "" {
				all[command] = m
			}
		}
	}
	return all
}

// block is a fenced block of a page.
type block struct {
	page, language, text string
	line                 int // of its beginning
}

// documented reads the blocks of all pages for users.
func documented(t *testing.T) []block {
	t.Helper()
	top := filepath.Join("..", "..", "..")
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "packaging/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	var all []block
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.ToSlash(strings.TrimPrefix(page, top+string(filepath.Separator)))
		var now *block
		for i, line := range strings.Split(string(text), "\n") {
			switch language, fence := strings.CutPrefix(line, "```"); {
			case fence && now == nil:
				now = &block{page: name, language: language, line: i + 1}
			case fence:
				all = append(all, *now)
				now = nil
			case now != nil:
				now.text += line + "\n"
			}
		}
	}
	return all
}

// commands are the lines of a block without their comments.
func (b block) commands() []string {
	var all []string
	for line := range strings.Lines(b.text) {
		line, _, _ = strings.Cut(line, "  #")
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

// Every command that the documentation shows is run, block by block, in a home of its own; where it is run elsewhere or not at
// all, testdata/docs/commands.txtar says so, and says no more.
func TestDocumentedCommands(t *testing.T) {
	list := manners(t)
	shown := map[string]bool{}
	for _, b := range documented(t) {
		if b.language == "" {
			if m := regexp.MustCompile(`(?m)^(outlive|claude|codex|npx|go|make) [a-z]`).FindString(b.text); m != "" && !synopsis(b) {
				t.Errorf("%s:%d: a block of commands begins with ```sh, so that they are run", b.page, b.line)
			}
		}
		if b.language == "python" {
			t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) { newSandbox(t, b).program("python3", b.text) })
		}
		if !slices.Contains([]string{"sh", "bash", "powershell"}, b.language) {
			continue
		}
		var run []string
		for _, command := range b.commands() {
			shown[command] = true
			switch m := list[command]; {
			case m.by != "":
				runBy(t, m.by, command)
			case m.why == "":
				run = append(run, command)
			}
		}
		if run == nil {
			continue
		}
		t.Run(fmt.Sprintf("%s:%d", b.page, b.line), func(t *testing.T) {
			t.Parallel()
			s := newSandbox(t, b)
			for _, command := range run {
				s.command(command, list[command])
			}
		})
	}
	for command := range list {
		if !shown[command] {
			t.Errorf("testdata/docs/commands.txtar has %q, which no page shows", command)
		}
	}
}

// synopsis reports a block that says how commands are called, with [flags] and NAMES.
func synopsis(b block) bool { return strings.Contains(b.text, "[flags]") }

// The words of the synopsis are commands.
func TestSynopsis(t *testing.T) {
	seen := 0
	for _, b := range documented(t) {
		if !synopsis(b) {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^outlive ([a-z]+)`).FindAllStringSubmatch(b.text, -1) {
			seen++
			if found, _, err := Command().Find([]string{m[1]}); err != nil || found.Name() != m[1] {
				t.Errorf("%s:%d: there is no outlive %s: %v", b.page, b.line, m[1], err)
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d commands", seen)
	}
}

// runBy wants a file that runs such a command: one with its words.
func runBy(t *testing.T, file, command string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(file)))
	if err != nil {
		t.Errorf("%s is run by %v", command, err)
	}
	for _, word := range strings.Fields(regexp.MustCompile(`^(outlive agent [a-z]+|outlive [a-z]+|[\w.-]+)`).FindString(command)) {
		if !bytes.Contains(text, []byte(word)) {
			t.Errorf("%s is not run by %s: it has no %s", command, file, word)
		}
	}
}

// sandbox is where the commands of a block are run: a home with the configuration of a client, the files that the page
// speaks of, and programs in place of those of others, from testdata/docs.
type sandbox struct {
	*testing.T
	dir string
	env []string
}

func newSandbox(t *testing.T, of block) *sandbox {
	t.Helper()
	given, err := filepath.Abs(filepath.Join("..", "..", "..", "testdata", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	s := &sandbox{T: t, dir: t.TempDir()}
	if err := os.CopyFS(s.dir, os.DirFS(filepath.Join(given, "home"))); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "out") // the path of a Unix socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	s.env = append(os.Environ(), "HOME="+s.dir, "PATH="+filepath.Join(given, "bin")+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+sockets,
		"XDG_STATE_HOME="+filepath.Join(s.dir, ".local", "state"), "XDG_CONFIG_HOME="+filepath.Join(s.dir, ".config"),
		"CLAUDE_CONFIG_DIR=", "CODEX_HOME=", "DISPLAY=", "WAYLAND_DISPLAY=", "GORACE=atexit_sleep_ms=0")
	for _, b := range documented(t) {
		if name := regexp.MustCompile(`^# ([\w-]+\.yaml)\n`).FindStringSubmatch(b.text); b.page == of.page && name != nil {
			if err := os.WriteFile(filepath.Join(s.dir, name[1]), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if strings.Contains(of.text, "output.log") || strings.Contains(of.text, "mcp_audit.log") {
		s.recordLogs()
	}
	if strings.Contains(of.text, "outlive agent start") && !strings.Contains(of.text, "outlive monitor &") {
		s.command("outlive monitor &", manner{until: monitorLooks})
	}
	return s
}

// monitorLooks is what a monitor says after each look.
const monitorLooks = "Monitor cycle complete"

// recordLogs runs a server that crashes and is restarted, with its output in output.log and its audit log in mcp_audit.log.
func (s *sandbox) recordLogs() {
	s.Helper()
	stderr, err := os.Create(filepath.Join(s.dir, "output.log"))
	if err != nil {
		s.Fatal(err)
	}
	defer stderr.Close()
	cmd := exec.Command("outlive", "run", "--audit", "mcp_audit.log", "--", "mcp-server")
	cmd.Dir, cmd.Env, cmd.Stderr = s.dir, s.env, stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		s.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Fatal(err)
	}
	client := mcptest.NewClient(mcptest.Join(out, in))
	ctx, cancel := context.WithTimeout(s.Context(), documentedPatience)
	defer cancel()
	_, err = client.Initialize(ctx, "2025-11-25")
	for _, call := range []string{
		`{"name":"restart_server","arguments":{"reason":"documentation"}}`,
		`{"name":"verify_server_restarted","arguments":{"since_timestamp":"2026-01-01T00:00:00Z"}}`, // else what exits next is the old process
		`{"name":"exit","arguments":{"code":7}}`,
	} {
		if err == nil {
			_, err = client.Call(ctx, "tools/call", json.RawMessage(call))
		}
	}
	if err == nil {
		await.Value(s, "a restart and a crash", func() (string, bool) { // it ends after its answer; at the end of the session that would be no crash
			said, err := os.ReadFile(stderr.Name())
			return fmt.Sprintf("%s %v", said, err), bytes.Contains(said, []byte("Restart completed")) && bytes.Contains(said, []byte("Server crashed"))
		})
		err = client.CloseWrite()
	}
	<-client.Done()
	if err := errors.Join(err, cmd.Wait()); err != nil {
		s.Fatal(err)
	}
}

// otherPorts takes the place of addresses that others on this machine may have.
var otherPorts = strings.NewReplacer("127.0.0.1:8080", "127.0.0.1:0", "0.0.0.0:8080", "0.0.0.0:0",
	"outlive dashboard", "outlive dashboard --listen 127.0.0.1:0")

// command runs one, as m says. One that ends with & goes on until the block is over.
func (s *sandbox) command(text string, m manner) {
	s.Helper()
	line, background := strings.CutSuffix(otherPorts.Replace(text), "&")
	ctx, cancel := context.WithTimeout(context.Background(), documentedPatience)
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.Dir, cmd.Env = s.dir, s.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out := &heard{text: m.until, come: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	finish := func() {
		defer cancel()
		var exit *exec.ExitError
		err := <-ended
		if m.until != "" && errors.As(err, &exit) { // it was interrupted
			if status := exit.Sys().(syscall.WaitStatus); status.Signal() == syscall.SIGINT || status.ExitStatus() == exitInterrupted {
				err = nil
			}
		}
		if err != nil {
			s.Errorf("%s: %v\n%s", text, err, out)
		}
	}
	if m.until == "" {
		finish()
		return
	}
	select {
	case <-out.come:
	case err := <-ended:
		s.Errorf("%s has ended, and did not say %q: %v\n%s", text, m.until, err, out)
		ended <- err
	case <-ctx.Done():
		s.Errorf("%s does not say %q:\n%s", text, m.until, out)
	}
	interrupt := func() {
		select {
		case err := <-ended: // its number may be another group's by now
			ended <- err
		default:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		}
		finish()
	}
	if background {
		s.Cleanup(interrupt)
		return
	}
	interrupt()
}

// program runs a program in another language, which has to print something.
func (s *sandbox) program(interpreter, text string) {
	s.Helper()
	path, err := exec.LookPath(interpreter)
	if errors.Is(err, exec.ErrNotFound) {
		s.Skipf("%s is not installed", interpreter)
	}
	cmd := exec.Command(path, "-c", text)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
		s.Errorf("%v: %s", err, out)
	}
}

// heard keeps what a command prints, and tells when it has printed a text.
type heard struct {
	mu   sync.Mutex
	all  bytes.Buffer
	text string
	once sync.Once
	come chan struct{}
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all.Write(b)
	if h.text != "" && strings.Contains(h.all.String(), h.text) {
		h.once.Do(func() { close(h.come) })
	}
	return len(b), nil
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.all.String()
}
