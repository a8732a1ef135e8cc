package child

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// modeVar turns the test binary into a child, or into an outlive that has one.
const modeVar = "CHILD_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		os.Exit(misbehave(mode, os.Args[1:]))
	}
	os.Exit(m.Run())
}

func misbehave(mode string, args []string) int {
	switch mode {
	case "exit":
		n, _ := strconv.Atoi(args[0])
		return n
	case "tell":
		_ = json.NewEncoder(os.Stdout).Encode(args)
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "sleep":
		linger()
	case "family": // tells the number of a grandchild, which does not notice that it is left
		p, err := os.StartProcess(os.Args[0], os.Args[:1], &os.ProcAttr{Env: withMode("sleep"), Files: []*os.File{nil, os.Stdout, nil}})
		if err != nil {
			return 1
		}
		fmt.Println(p.Pid)
		if args[0] == "stay" {
			linger()
		}
	case "outlive": // starts a family as outlive starts a server, and tells both numbers
		p, err := Start(Spec{Argv: []string{os.Args[0], "stay"}, Env: withMode("family")}, nil)
		if err != nil {
			return 1
		}
		line, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
		fmt.Printf("%d %s", p.PID(), line)
		linger()
	}
	return 0
}

func withMode(mode string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, modeVar+"=") })
	return append(env, modeVar+"="+mode)
}

func start(t *testing.T, mode string, args ...string) (p *Process, lines *bufio.Reader, exited chan Status) {
	t.Helper()
	exited = make(chan Status, 2) // room for a second call, which would be a fault
	p, err := Start(Spec{Argv: append([]string{os.Args[0]}, args...), Env: withMode(mode)}, func(s Status) { exited <- s })
	if err != nil {
		t.Fatalf("start %s: %v", mode, err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		closeAll(p.ours)
	})
	return p, bufio.NewReader(p.Stdout()), exited
}

func wait(t *testing.T, exited chan Status) Status {
	t.Helper()
	select {
	case s := <-exited:
		return s
	case <-time.After(2 * time.Minute):
		t.Fatal("onExit was not called")
		return Status{}
	}
}

func number(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("read a line: %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// held is a handle of a process, by which its end is seen even when its number is another one's.
func held(t *testing.T, pid int) windows.Handle {
	t.Helper()
	h, err := windows.OpenProcess(windows.SYNCHRONIZE, false, uint32(pid))
	if err != nil {
		t.Fatalf("open process %d: %v", pid, err)
	}
	t.Cleanup(func() { _ = windows.CloseHandle(h) })
	return h
}

func gone(t *testing.T, h windows.Handle) {
	t.Helper()
	if event, err := windows.WaitForSingleObject(h, 10_000); err != nil || event != windows.WAIT_OBJECT_0 {
		t.Errorf("it still runs: %v, %v", event, err)
	}
}

func TestExitCodes(t *testing.T) {
	for _, code := range []int{0, 1, 42, 255, 0xC0000005} {
		_, _, exited := start(t, "exit", strconv.Itoa(code))
		if s := wait(t, exited); s.Code != code || s.Signalled || s.Uptime <= 0 {
			t.Errorf("%d: %+v", code, s)
		}
	}
}

func TestStreams(t *testing.T) {
	p, lines, exited := start(t, "cat")
	if _, err := p.Stdin().WriteString("hello\n"); err != nil {
		t.Fatal(err)
	}
	if got, _ := lines.ReadString('\n'); got != "hello\n" {
		t.Errorf("echo: %q", got)
	}
	_ = p.Stdin().Close()
	if _, err := lines.ReadByte(); err != io.EOF {
		t.Errorf("the child's end of stdout is still held: %v", err)
	}
	if s := wait(t, exited); s.Code != 0 {
		t.Errorf("status %+v", s)
	}
}

func TestKillReachesTheTree(t *testing.T) {
	p, lines, exited := start(t, "family", "stay")
	grandchild := held(t, number(t, lines))
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if s := wait(t, exited); s.Code != 137 || s.Signal != "killed" {
		t.Errorf("status %+v", s)
	}
	gone(t, grandchild)
	if err := p.Kill(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("kill after the end: %v", err)
	}
}

func TestGrandchildIsKilledWhenItIsLeft(t *testing.T) {
	_, lines, exited := start(t, "family", "leave")
	grandchild := held(t, number(t, lines))
	if s := wait(t, exited); s.Code != 0 || s.Signalled {
		t.Errorf("the leader's status must be its own: %+v", s)
	}
	gone(t, grandchild)
	if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
		t.Errorf("stdout must end: %q, %v", rest, err)
	}
}

// The kernel ends the job with the last handle of it, which is outlive's.
func TestNothingSurvivesAKillOfOutlive(t *testing.T) {
	for range 5 {
		outlive := exec.Command(os.Args[0])
		outlive.Env = withMode("outlive")
		out, err := outlive.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := outlive.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		var server, grandchild int
		if _, scanErr := fmt.Sscan(line, &server, &grandchild); err != nil || scanErr != nil {
			t.Fatalf("%q: %v, %v", line, err, scanErr)
		}
		handles := []windows.Handle{held(t, server), held(t, grandchild)}
		if err := outlive.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = outlive.Wait()
		for _, h := range handles {
			gone(t, h)
		}
	}
}

// The command is looked for in the PATH that the server gets, with the extensions of PATHEXT, and never in the working directory.
func TestTheServersOwnPath(t *testing.T) {
	folder := t.TempDir()
	script := filepath.Join(folder, "mcp-server-time.cmd")
	if err := os.WriteFile(script, []byte("@exit 5\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.EqualFold(kv[:min(5, len(kv))], "PATH=") })
	for _, path := range []string{"Path=" + folder, `PATH=C:\none;` + folder} {
		exited := make(chan Status, 1)
		p, err := Start(Spec{Argv: []string{"mcp-server-time"}, Env: append(slices.Clone(env), path)}, func(s Status) { exited <- s })
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if s := wait(t, exited); s.Code != 5 {
			t.Errorf("%s: %+v", path, s)
		}
		closeAll(p.ours)
	}
	t.Chdir(folder)
	for _, path := range []string{`PATH=C:\none`, `PATH=.;C:\none`} {
		_, err := Start(Spec{Argv: []string{"mcp-server-time"}, Env: append(slices.Clone(env), path)}, func(Status) { t.Error("onExit called") })
		if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "not in PATH: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := Start(Spec{Argv: []string{filepath.Join(folder, "none.exe")}, Env: env}, nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// npx is a batch file.
func TestArgumentsOfABatchFile(t *testing.T) {
	script := filepath.Join(t.TempDir(), "npx.cmd")
	if err := os.WriteFile(script, []byte("@\""+os.Args[0]+"\" %*\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"-y", "server", "http://h/?a=1&b=2", "two words", "a^b"}
	exited := make(chan Status, 1)
	p, err := Start(Spec{Argv: append([]string{script}, want...), Env: withMode("tell")}, func(s Status) { exited <- s })
	if err != nil {
		t.Fatal(err)
	}
	defer closeAll(p.ours)
	var got []string
	out, _ := io.ReadAll(p.Stdout())
	if json.Unmarshal(out, &got) != nil || !slices.Equal(got, want) {
		t.Errorf("%q arrived as %s", want, out)
	}
	wait(t, exited)
}

func TestTreeUsage(t *testing.T) {
	p, lines, _ := start(t, "family", "stay")
	number(t, lines)
	u, err := TreeUsage(p.PID())
	if err != nil || u.Processes != 2 || u.RSS < 1<<20 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := TreeUsage(1 << 30); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("of nobody: %v", err)
	}
}

// A process that exits by itself while it is to be killed was not killed.
func TestAnExitBeforeTheKillIsItsOwn(t *testing.T) {
	cmd := exec.Command(os.Args[0], "3")
	cmd.Env = withMode("exit")
	_ = cmd.Run() // its state says how it went
	p := &Process{tree: tree{killed: true}}
	if s := p.status(cmd.ProcessState, nil); s.Code != 3 || s.Signalled {
		t.Errorf("status %+v", s)
	}
}
