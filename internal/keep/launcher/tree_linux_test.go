package launcher

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
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// chainVar turns the test binary into a process of a launcher's tree: the first word is what it is, the rest what it
// hands on.
const chainVar = "LAUNCHER_TEST_CHAIN"

// serverVar is the path that the server is started by.
const serverVar = "LAUNCHER_TEST_SERVER"

func TestMain(m *testing.M) {
	if chain := os.Getenv(chainVar); chain != "" {
		os.Exit(play(strings.Split(chain, ",")))
	}
	goleak.VerifyTestMain(m)
}

// title is npm's, which writes it over its argv.
const title = "npm exec pkg"

// play is what the processes of the tree do. Launchers change the environment as npx and uv do.
func play(chain []string) int {
	server := os.Getenv(serverVar)
	next := func(path string, args ...string) *exec.Cmd {
		cmd := exec.Command(path, args...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return slices.Contains([]string{"GONE", "PATH", chainVar}, name)
		})
		cmd.Env = append(cmd.Env, "PATH=/cache/bin:"+os.Getenv("PATH"), "npm_command=exec", chainVar+"="+strings.Join(chain[1:], ","))
		return cmd
	}
	var cmd *exec.Cmd
	switch chain[0] {
	case "launch":
		cmd = next(server, "--flag", "a b", "")
		if slices.Contains([]string{"launch", "shell", "script"}, chain[1]) {
			cmd.Args = []string{title}
		}
	case "shell":
		cmd = next("sh", "-c", fmt.Sprintf("'%s' --flag 'a b' ''", server))
	case "script":
		cmd = next("sh", filepath.Join(filepath.Dir(server), "script"))
	case "helped":
		cmd = next(server, "--flag")
	case "serve", "serve-moved", "serve-titled", "serve-elsewhere":
		return serve(chain[0])
	}
	return fail(cmd.Run())
}

func fail(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve says how it was started, and ends with its input.
func serve(mode string) int {
	in, out := os.Stdin, os.Stdout
	line, _ := json.Marshal(introduce())
	switch mode {
	case "serve-moved": // as the Python SDK does, so that a stray print cannot disturb the protocol
		fdIn, _ := syscall.Dup(0)
		fdOut, _ := syscall.Dup(1)
		in, out = os.NewFile(uintptr(fdIn), "in"), os.NewFile(uintptr(fdOut), "out")
		null, _ := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		_ = syscall.Dup3(int(null.Fd()), 0, 0)
		_ = syscall.Dup3(2, 1, 0)
	case "serve-elsewhere":
		if err := os.Chdir("/"); err != nil {
			return fail(err)
		}
	case "serve-titled":
		words := os.Args
		for _, w := range words { // the memory is argv's own
			clear(unsafe.Slice(unsafe.StringData(w), len(w)))
		}
		copy(unsafe.Slice(unsafe.StringData(words[0]), len(words[0])), "my server")
	}
	_, _ = out.Write(append(line, '\n'))
	_, _ = io.Copy(io.Discard, in)
	return 0
}

// introduction is what a server can see of how it was started.
type introduction struct {
	Args []string
	Dir  string
	Env  []string
}

func introduce() introduction {
	dir, _ := os.Getwd()
	env := os.Environ()
	slices.Sort(env)
	return introduction{slices.Clone(os.Args), dir, slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "PWD=") })}
}

// started is a process with our pipes.
type started struct {
	cmd         *exec.Cmd
	stdin, stdo *os.File
	lines       *bufio.Reader
}

// start runs argv as outlive does: with its own pipes, and in a process group that ends with the test.
func start(t *testing.T, dir string, env, argv []string) *started {
	t.Helper()
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, env, theirIn, theirOut, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getenv(endToEndVar) != "" {
		cmd.Stderr = nil // real servers are talkative
	}
	if argv[0] == title {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Err = self, nil
	}
	err = cmd.Start()
	_ = theirIn.Close()
	_ = theirOut.Close()
	if err != nil {
		t.Fatal(err)
	}
	s := &started{cmd, in, out, bufio.NewReader(out)}
	t.Cleanup(s.end)
	return s
}

func (s *started) end() {
	if s.cmd.ProcessState == nil {
		_ = s.stdin.Close()
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		_ = s.cmd.Wait()
		_ = s.stdo.Close()
	}
}

func (s *started) line(t *testing.T) string {
	t.Helper()
	if err := s.stdo.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	line, err := s.lines.ReadString('\n')
	if err != nil {
		t.Fatalf("%q: %v", s.cmd.Args, err)
	}
	return line
}

func (s *started) resolve() (Command, error) { return Resolve(s.cmd.Process.Pid, s.stdin, s.stdo) }

// stage makes a folder with the files of a launcher's tree, and the environment to start it in.
func stage(t *testing.T, chain string) (dir string, env []string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := filepath.Join(dir, "server")
	if err := os.Symlink(self, server); err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"uv": program, "script": fmt.Appendf(nil, "'%s' --flag; true", server)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{"PATH=" + os.Getenv("PATH"), "SECRET=s3cret", "GONE=1", serverVar + "=" + server, chainVar + "=" + chain}
}

// A server started by the resolved command gets the same environment as through its launcher.
func TestResolvedCommandStartsTheSameServer(t *testing.T) {
	for _, tc := range []struct{ leader, chain string }{
		{title, "launch,serve"},
		{title, "launch,launch,serve"},
		{title, "launch,launch,shell,serve"},
		{title, "shell,serve"},
		{title, "launch,serve-moved"},
		{"uv", "launch,serve"},
	} {
		t.Run(tc.leader+" "+tc.chain, func(t *testing.T) {
			dir, env := stage(t, tc.chain)
			leader := tc.leader
			if leader == "uv" {
				leader = filepath.Join(dir, "uv")
			}
			s := start(t, dir, env, []string{leader})
			want := s.line(t)
			c, err := s.resolve()
			if err != nil {
				t.Fatal(err)
			}
			s.end()
			if c.Gone() || c.Argv[0] != filepath.Join(dir, "server") {
				t.Errorf("gone: %v: %+v", c.Gone(), c)
			}
			direct := start(t, c.Dir, c.Environment(env), c.Argv)
			if diff := cmp.Diff(want, direct.line(t)); diff != "" {
				t.Errorf("(-launched +direct):\n%s", diff)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, leader, chain string
		want                error
	}{
		{"two that could be it", title, "launch,helped,serve", ErrSeveral},
		{"a script that does more than start it", title, "launch,script,serve", ErrSeveral},
		{"one that has renamed itself", title, "launch,serve-titled", ErrUnusable},
		{"one that has changed its directory", title, "launch,serve-elsewhere", ErrMoved},
		{"no launcher", "server", "launch,serve", ErrNone},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, env := stage(t, tc.chain)
			leader := tc.leader
			if leader == "server" {
				leader = filepath.Join(dir, "server")
			}
			s := start(t, dir, env, []string{leader})
			s.line(t)
			if c, err := s.resolve(); !errors.Is(err, tc.want) {
				t.Errorf("got %+v, %v, want %v", c, err, tc.want)
			}
		})
	}
}

func TestResolveNeedsTheServersOwnPipes(t *testing.T) {
	dir, env := stage(t, "launch,serve")
	s := start(t, dir, env, []string{title})
	s.line(t)
	other := start(t, dir, env, []string{title})
	other.line(t)
	pid := s.cmd.Process.Pid
	if _, err := Resolve(pid, other.stdin, other.stdo); !errors.Is(err, ErrNoServer) {
		t.Errorf("another server's pipes: %v", err)
	}
	if _, err := Resolve(pid, s.stdin, nil); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("no pipe: %v", err)
	}
	s.end()
	if _, err := Resolve(pid, other.stdin, other.stdo); !errors.Is(err, ErrGone) || errors.Is(err, ErrNone) {
		t.Errorf("a leader that is gone: %v", err)
	}
}

// A launcher installs until its server is there. What is no installer does not, whatever it is.
func TestInstallingEndsWithTheServer(t *testing.T) {
	dir, env := stage(t, "launch,serve")
	s := start(t, dir, env, []string{title})
	s.line(t)
	if Installing([]string{"npx", "-y", "pkg"}, s.cmd.Process.Pid, s.stdin, s.stdo) {
		t.Error("its server has spoken")
	}
	other := start(t, dir, env, []string{title})
	if !Installing([]string{"npx", "-y", "pkg"}, s.cmd.Process.Pid, other.stdin, other.stdo) {
		t.Error("nobody has these pipes")
	}
	if Installing([]string{"node", "server.js"}, s.cmd.Process.Pid, other.stdin, other.stdo) {
		t.Error("node installs nothing")
	}
}
