//go:build unix

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// dialoguePatience bounds every wait of a dialogue.
const dialoguePatience = 2 * time.Minute

// stderrPatience is how long after the end of a process its stderr may still be written by what it has started.
const stderrPatience = 10 * time.Second

// player plays one dialogue with one command.
type player struct {
	ts     *testscript.TestScript
	cmd    *exec.Cmd
	client *mcptest.Client
	stderr transcript
	gone   chan struct{}
	from   int // lines of stdout that an earlier "<" has passed
	seen   int // bytes of stderr that an earlier "e<" has passed
	ended  bool
}

// client plays the dialogue of a file with a command. A dialogue has one step a line:
//
//	> LINE           send LINE; $NAME and ${NAME} stand for variables of the script
//	< TEXT           the next line of stdout with TEXT in it; those before it are passed over
//	<! TEXT          no line of stdout so far has TEXT in it
//	e< REGEXP        the next line of stderr that matches
//	e<! REGEXP       no line of stderr so far matches
//	close            close stdin
//	signal NAME      send TERM, INT, HUP or KILL to the command
//	kill             send KILL to the server that runs now
//	exit CODE TIME   the command ends within TIME with CODE
//	start NAME COMMAND…  start another client's command; the steps of lines that begin with NAME are its
//	do COMMAND…      run a shell command to its end; "do CODE COMMAND…" wants that exit status
//	# comment
//
// A dialogue that does not say "exit" ends with "close" and "exit 0 5s". What came is there for stdout and stderr.
func client(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: client FILE COMMAND…")
	}
	first := newPlayer(ts, args[1:])
	players, named := []*player{first}, map[string]*player{}
	defer func() {
		for _, p := range players {
			p.finish()
		}
	}()
	for i, line := range strings.Split(ts.ReadFile(args[0]), "\n") {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		p := first
		if named[word] != nil {
			p = named[word]
			word, rest, _ = strings.Cut(rest, " ")
		}
		switch word {
		case "", "#":
		case "start":
			words := strings.Fields(rest)
			named[words[0]] = newPlayer(ts, words[1:])
			players = append(players, named[words[0]])
		default:
			p.step(i+1, word, rest)
		}
	}
	for _, p := range players {
		if !p.ended {
			p.step(0, "close", "")
			p.step(0, "exit", "0 5s")
		}
		p.check()
	}
}

func newPlayer(ts *testscript.TestScript, argv []string) *player {
	path := argv[0]
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found := filepath.Join(dir, argv[0]); !strings.Contains(argv[0], "/") && executableFile(found) {
			path = found
			break
		}
	}
	p := &player{ts: ts, cmd: exec.Command(path, argv[1:]...), gone: make(chan struct{})}
	p.cmd.Args[0] = argv[0]
	p.cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "HOME", "WORK", "TMPDIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "GORACE"} {
		p.cmd.Env = append(p.cmd.Env, name+"="+ts.Getenv(name))
	}
	p.cmd.Stderr, p.cmd.WaitDelay = &p.stderr, stderrPatience
	// In the group of the tests, a dialogue that stops its process would end them all: where nobody's terminal has that group, the kernel
	// sends it SIGHUP when a server of --mode inherit ends and something in the group is stopped.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	inR, inW, err := os.Pipe()
	ts.Check(err)
	outR, outW, err := os.Pipe()
	ts.Check(err)
	p.cmd.Stdin, p.cmd.Stdout = inR, outW
	err = p.cmd.Start()
	_, _ = inR.Close(), outW.Close()
	ts.Check(err)
	p.client = mcptest.NewClient(mcptest.Join(outR, inW))
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // the state is kept in cmd
	}()
	return p
}

func executableFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// finish leaves nothing running, whatever the dialogue did. What the process has started may live on and wait for the end of stdin,
// with stderr in its hands.
func (p *player) finish() {
	_ = p.cmd.Process.Kill()
	_ = p.client.CloseWrite()
	<-p.gone
	_ = p.client.Close()
	_, _ = p.ts.Stdout().Write([]byte(strings.Join(append(p.client.Lines(), ""), "\n")))
	_, _ = p.ts.Stderr().Write([]byte(p.stderr.text()))
}

func (p *player) step(n int, word, rest string) {
	ctx, cancel := context.WithTimeout(context.Background(), dialoguePatience)
	defer cancel()
	switch word {
	case ">":
		p.send(os.Expand(rest, p.ts.Getenv))
	case "<":
		p.expect(ctx, n, os.Expand(rest, p.ts.Getenv))
	case "<!":
		for _, line := range p.client.Lines() {
			if strings.Contains(line, rest) {
				p.fail(n, "stdout has %s", line)
			}
		}
	case "e<":
		p.expectStderr(ctx, n, rest)
	case "e<!":
		if found := regexp.MustCompile("(?m)" + rest).FindString(p.stderr.text()); found != "" {
			p.fail(n, "stderr has %q", found)
		}
	case "close":
		_ = p.client.CloseWrite()
	case "signal":
		p.signal(n, rest)
	case "kill":
		p.kill(ctx, n)
	case "exit":
		p.exit(n, strings.Fields(rest))
	case "do":
		p.do(rest)
	default:
		p.fail(n, "unknown step %q", word)
	}
}

// send gives a request to the client as one, so that it checks the answers; everything else goes out as it is.
func (p *player) send(line string) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		Vers   string          `json:"jsonrpc"`
	}
	if json.Unmarshal([]byte(line), &m) == nil && m.ID != nil && m.Method != "" && m.Vers == "2.0" {
		var params any
		if m.Params != nil {
			params = m.Params
		}
		p.client.GoID(string(m.ID), m.Method, params)
		return
	}
	_ = p.client.Send(line) // a command that is gone shows at the next step
}

func (p *player) expect(ctx context.Context, n int, want string) {
	_, err := p.client.WaitAfter(ctx, p.from, func(line string) bool {
		p.from++
		return strings.Contains(line, want)
	})
	if err != nil {
		p.fail(n, "%q does not come: %v", want, err)
	}
}

func (p *player) expectStderr(ctx context.Context, n int, want string) {
	form := regexp.MustCompile("(?m)" + want)
	for {
		changed := p.stderr.changing()
		if at := form.FindStringIndex(p.stderr.text()[p.seen:]); at != nil {
			p.seen += at[1]
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			p.fail(n, "stderr: %q does not come", want)
		}
	}
}

func (p *player) signal(n int, name string) {
	sig, ok := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}[name]
	if !ok {
		p.fail(n, "unknown signal %q", name)
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.fail(n, "signal: %v", err)
	}
}

var runningPID = regexp.MustCompile(`MCP server running \(PID: ([1-9]\d*)\)`)

func (p *player) kill(ctx context.Context, n int) {
	var all [][]string
	for len(all) == 0 {
		changed := p.stderr.changing()
		if all = runningPID.FindAllStringSubmatch(p.stderr.text(), -1); len(all) > 0 {
			break
		}
		select {
		case <-changed: // the log is written behind the answers
		case <-ctx.Done():
			p.fail(n, "no server is running")
		}
	}
	pid, _ := strconv.Atoi(all[len(all)-1][1])
	if err := proc.Kill(pid); err != nil {
		p.fail(n, "%v", err)
	}
}

func (p *player) exit(n int, args []string) {
	code, err := strconv.Atoi(args[0])
	p.ts.Check(err)
	within, err := time.ParseDuration(args[1])
	p.ts.Check(err)
	within = tier.Limit(within)
	p.ended = true
	select {
	case <-p.gone:
		if got := p.cmd.ProcessState.ExitCode(); got != code {
			p.fail(n, "exit status %d, want %d", got, code)
		}
	case <-time.After(within):
		p.fail(n, "still there after %s", within)
	}
}

func (p *player) do(command string) {
	code := "0"
	if first, rest, _ := strings.Cut(command, " "); strings.Trim(first, "0123456789") == "" {
		code, command = first, rest
	}
	exits(p.ts, false, []string{code, "sh", "-c", command})
}

// check fails if anything on stdout was no protocol, or an answer came twice.
func (p *player) check() {
	for _, problem := range p.client.Problems() {
		if !strings.HasSuffix(strings.SplitN(problem, ":", 2)[0], "never asked") {
			p.fail(0, "the client saw: %s", problem)
		}
	}
}

func (p *player) fail(n int, format string, args ...any) {
	p.ts.Logf("stdout:\n%s", strings.Join(p.client.Lines(), "\n"))
	p.ts.Logf("stderr:\n%s", p.stderr.text())
	p.ts.Logf("line %d of the dialogue:", n)
	p.ts.Fatalf(format, args...)
}

// transcript is a stderr that is read while it is written.
type transcript struct {
	mu      sync.Mutex
	b       bytes.Buffer
	changed chan struct{}
}

// Write implements io.Writer.
func (s *transcript) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	return s.b.Write(b)
}

func (s *transcript) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// changing returns a channel that is closed by the next Write.
func (s *transcript) changing() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.changed
}
