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

func TestMain(m *testing.M) {
	if chain := os.Getenv(chainVar); chain != "" {
		os.Exit(play(strings.Split(chain, ",")))
	}
	goleak.VerifyTestMain(m)
}

// play is what the processes of the tree do. Launchers change the environment as npx and uv do.
func play(chain []string) int {
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
	dir := filepath.Dir(os.Args[0])
	server := filepath.Join(dir, "server")
	var cmd *exec.Cmd
	switch chain[0] {
	case "launch":
		cmd = next(server, "--flag", "a b", "")
		if slices.Contains([]string{"launch", "cover", "script"}, chain[1]) {
			cmd = next(filepath.Join(dir, "npx"), "inner")
		}
	case "cover":
		cmd = next("sh", "-c", fmt.Sprintf("'%s' --flag 'a b' ''", server))
	case "script":
		cmd = next("sh", "-c", fmt.Sprintf("'%s' --flag; true", server))
	case "become":
		cmd = next(server, "--flag", "a b", "")
		return fail(syscall.Exec(cmd.Path, cmd.Args, cmd.Env))
	case "helped":
		cmd = next(server, "--flag")
	case "serve", "serve-moved", "serve-titled":
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

func (s *started) resolve(asked, env []string) (Command, error) {
	return Resolve(Request{Leader: s.cmd.Process.Pid, Asked: asked, Env: env, Stdin: s.stdin, Stdout: s.stdo})
}

// stage makes a folder with the names a launcher's tree goes by, and the environment to start it in.
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
	for _, name := range []string{"npx", "server"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir, []string{"PATH=" + os.Getenv("PATH"), "SECRET=s3cret", "GONE=1", chainVar + "=" + chain}
}

// A server started by the resolved command gets the same environment as through its launcher.
func TestResolvedCommandStartsTheSameServer(t *testing.T) {
	for _, tc := range []struct {
		chain string
		env   bool // the environment must be passed
	}{
		{"launch,serve", false},
		{"launch,launch,serve", false},
		{"launch,launch,cover,serve", false},
		{"cover,serve", false},
		{"become,serve", true},
		{"launch,serve-moved", false},
	} {
		t.Run(tc.chain, func(t *testing.T) {
			dir, env := stage(t, tc.chain)
			asked := []string{filepath.Join(dir, "npx"), "-y", "pkg"}
			s := start(t, dir, env, asked)
			want := s.line(t)
			var known []string
			if tc.env {
				known = env
			}
			c, err := s.resolve(asked, known)
			if err != nil {
				t.Fatal(err)
			}
			s.end()
			if !c.Fresh() || c.Kind != Npx || c.Argv[0] != filepath.Join(dir, "server") {
				t.Errorf("stale: %q: %+v", c.Stale(), c)
			}
			if b, err := json.Marshal(c); err != nil || strings.Contains(string(b), "s3cret") {
				t.Errorf("holds a secret that the launcher was given: %s, %v", b, err)
			}
			direct := start(t, c.Dir, c.Env.Apply(env), c.Argv)
			if diff := cmp.Diff(want, direct.line(t)); diff != "" {
				t.Errorf("(-launched +direct):\n%s", diff)
			}
		})
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, chain string
		asked       []string
		want        error
	}{
		{"two that could be it", "launch,helped,serve", nil, ErrSeveral},
		{"a shell that does more than start it", "launch,script,serve", nil, ErrSeveral},
		{"one that has renamed itself", "launch,serve-titled", nil, ErrUnusable},
		{"no launcher", "launch,serve", []string{"server"}, ErrNotLauncher},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir, env := stage(t, tc.chain)
			asked := []string{filepath.Join(dir, "npx"), "-y", "pkg"}
			s := start(t, dir, env, asked)
			s.line(t)
			if tc.asked == nil {
				tc.asked = asked
			}
			if c, err := s.resolve(tc.asked, nil); !errors.Is(err, tc.want) {
				t.Errorf("got %+v, %v, want %v", c, err, tc.want)
			}
		})
	}
}

func TestResolveNeedsTheServersOwnPipes(t *testing.T) {
	dir, env := stage(t, "launch,serve")
	asked := []string{filepath.Join(dir, "npx"), "-y", "pkg"}
	s := start(t, dir, env, asked)
	s.line(t)
	other := start(t, dir, env, asked)
	other.line(t)
	pid := s.cmd.Process.Pid
	if _, err := Resolve(Request{Leader: pid, Asked: asked, Stdin: other.stdin, Stdout: other.stdo}); !errors.Is(err, ErrNoServer) {
		t.Errorf("another server's pipes: %v", err)
	}
	if _, err := Resolve(Request{Leader: pid, Asked: asked, Stdin: s.stdin}); !errors.Is(err, os.ErrInvalid) {
		t.Errorf("no pipe: %v", err)
	}
	s.end()
	if _, err := Resolve(Request{Leader: pid, Asked: asked, Stdin: other.stdin, Stdout: other.stdo}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a leader that is gone: %v", err)
	}
}

func FuzzSplitCmdline(f *testing.F) {
	f.Add([]byte("node\x00server.js\x00"))
	f.Add([]byte("npm exec x\x00\x00\x00\x00"))
	f.Add([]byte("title beyond the end"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		argv, titled := splitCmdline(b)
		if titled || len(argv) == 0 {
			return
		}
		if back := strings.Join(argv, "\x00") + "\x00"; back != string(b) {
			t.Errorf("%q became %q", b, back)
		}
	})
}
