package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tmux is a terminal that tests can look at: outlive top runs in it.
type tmux struct {
	t      *testing.T
	socket string
}

// newTmux starts a terminal of that size with a command. How that ends is on the screen: tmux itself does not always tell it.
func newTmux(t *testing.T, s *scene, width, height int, command ...string) *tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is missing: e2e/install.sh installs it")
	}
	foreign(t, "tmux")
	x := &tmux{t, s.path("tmux")}
	cmd := exec.Command("tmux", append([]string{"-S", x.socket, "-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-s", "top", "--",
		"sh", "-c", `"$@"; echo "ended with $?"; exec sleep 600`, "sh"}, command...)...)
	cmd.Env, cmd.Dir = append(s.agentEnv(), "TERM=xterm-256color", "LC_ALL=C.UTF-8"), s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", x.socket, "kill-server").Run() })
	return x
}

func (x *tmux) do(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (x *tmux) press(keys ...string) {
	x.t.Helper()
	x.do(append([]string{"send-keys", "-t", "top"}, keys...)...)
}

// screen is what the terminal shows; with codes, also its colours.
func (x *tmux) screen(codes bool) string {
	x.t.Helper()
	args := []string{"capture-pane", "-p", "-t", "top"}
	if codes {
		args = append(args, "-e")
	}
	return x.do(args...)
}

// await waits until the screen is as a pattern says, and returns how long that took.
func (x *tmux) await(pattern string, limit time.Duration) time.Duration {
	x.t.Helper()
	begun, want := time.Now(), regexp.MustCompile(pattern)
	if !within(limit, func() bool { return want.MatchString(x.screen(false)) }) {
		x.t.Errorf("the screen is not as %q says within %s:\n%s", pattern, limit, x.screen(false))
	}
	return time.Since(begun)
}

// awaitEnd waits until the command has ended well. If it does not, it is made to say where all its goroutines are.
func (x *tmux) awaitEnd() {
	x.t.Helper()
	if within(patience, func() bool { return strings.Contains(x.screen(false), "ended with 0") }) {
		return
	}
	x.do("resize-window", "-t", "top", "-x", "200", "-y", "50")
	_ = exec.Command("pkill", "-QUIT", "-P", strings.TrimSpace(x.do("display-message", "-p", "-t", "top", "#{pane_pid}"))).Run()
	within(patience, func() bool { return strings.Contains(x.screen(false), "ended with") })
	x.t.Fatalf("it has not ended with 0:\n%s", x.do("capture-pane", "-p", "-t", "top", "-S", "-", "-E", "-"))
}

// keep keeps a screen in E2E_SHOTS, where somebody wants pictures.
func (x *tmux) keep(name string) {
	x.t.Helper()
	if dir := os.Getenv("E2E_SHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(x.screen(false)), 0o644); err != nil {
			x.t.Fatal(err)
		}
	}
}

// pidOf is the process of a server, as status has it.
func (s *scene) pidOf(t *testing.T, name string) int {
	t.Helper()
	var all []struct {
		Name      string `json:"name"`
		ServerPID int    `json:"server_pid"`
	}
	if err := json.Unmarshal([]byte(s.outlive(t, "status", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		if one.Name == name && one.ServerPID != 0 { // 0 would be our own group
			return one.ServerPID
		}
	}
	t.Fatalf("no server %s runs", name)
	return 0
}

// A terminal of 80×24 shows what happens while it is open: a server that is killed, an agent that dies and its incident; keys restart and
// acknowledge; it may become narrow and wide.
func TestTopShowsWhatHappens(t *testing.T) {
	besideOthers(t)
	s := newScene(t)
	x := newTmux(t, s, 80, 24, tools.outlive, "top")
	x.await(`works +ready`, patience)
	x.await(`(?s)broken.*GITHUB_TOKEN is not set`, patience)
	x.await(`shop +runs`, patience)
	x.keep("top")

	kill(t, s.pidOf(t, "works"))
	t.Logf("the kill of the server was on the screen after %s", x.await(`works .*restarted once`, inFull(onScreen)))
	x.await(`works +ready`, patience)

	_ = s.agent.Process.Kill()
	_ = s.agent.Wait()
	t.Logf("the end of the agent was on the screen after %s", x.await(`✖ shop +has crashed`, patience))
	x.await(`shop has crashed +waits for you`, patience)
	x.await(`1 waits for you`, patience)
	x.press("1")
	x.await(`>✖ shop has crashed`, patience)
	x.keep("top-incident")

	x.press("a")
	x.await(`acknowledged until`, patience)
	x.await(`▲ shop has crashed +acknowledged`, patience)

	x.press("2", "G", "r")
	x.await(`Restart works\?`, patience)
	x.press("y")
	x.await(`works was restarted in [0-9]+ ms`, patience)
	x.keep("top-restarted")

	x.press("/", "works")
	if !within(patience, func() bool { return !strings.Contains(x.screen(false), "broken") }) {
		t.Errorf("the filter lets broken through:\n%s", x.screen(false))
	}
	x.press("Escape")
	x.await(`broken`, patience)
	x.press("?")
	x.await(`the next row with which something is wrong`, patience)
	x.keep("top-help")
	x.press("q")

	for _, size := range [][2]string{{"40", "12"}, {"200", "50"}, {"80", "24"}} {
		x.do("resize-window", "-t", "top", "-x", size[0], "-y", size[1])
		x.await(`2 Servers: 2`, patience)
		x.await(`as of [0-9:]+`, patience)
		if size[0] == "40" {
			x.keep("top-narrow")
		}
	}
	x.press("q")
	x.awaitEnd()
}

// What is not heard of any more says so: an outlive that is stopped, beside others that go on.
func TestTopWithASilentOutlive(t *testing.T) {
	needFull(t, "it judges by the clock: who says nothing for two seconds is silent")
	s := newScene(t)
	x := newTmux(t, s, 80, 24, tools.outlive, "top")
	x.await(`works +ready`, patience)
	outlive := s.server.cmd.Process
	if err := outlive.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = outlive.Signal(syscall.SIGCONT) })
	x.await(`✖ works +no answer .*outlive runs, and does not answer`, patience)
	x.keep("top-silent")
	x.await(`as of [0-9:]+ *\n`, patience) // the rest goes on
	restart := exec.Command(tools.outlive, "restart", "--failed")
	restart.Env = s.env()
	if out, err := restart.CombinedOutput(); err == nil || !strings.Contains(string(out), ": no answer within 2s: whether it is to be restarted is not known") {
		t.Errorf("whether what is silent has failed nobody knows: %v %s", err, out)
	}
	if err := outlive.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	x.await(`works +ready`, patience)
}

// NO_COLOR leaves no colour, and nothing is said by colour alone; with it there are some.
func TestTopWithoutColour(t *testing.T) {
	needFull(t, "the same screen twice more, for its colours")
	colour := regexp.MustCompile(`\x1b\[[0-9;]*(3[0-7]|4[0-7]|9[0-7]|38;|48;)[0-9;]*m`)
	for _, env := range []string{"NO_COLOR=1", "NO_COLOR="} {
		s := newScene(t)
		x := newTmux(t, s, 80, 24, "env", env, tools.outlive, "top")
		x.await(`[✖▲] broken`, patience)
		x.await(`● works`, patience)
		if got, want := colour.MatchString(x.screen(true)), env == "NO_COLOR="; got != want {
			t.Errorf("%s: coloured %v, want %v:\n%q", env, got, want, x.screen(true))
		}
	}
}

// From the screen to the agent's terminal and back.
func TestTopJoinsAnAgent(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.outlive(t, "agent", "add", "talker", "--kind", "command", "--path", "shop", "--terminal", "--", "sh", "-c", "while :; do echo I talk; sleep 0.2; done")
	if !within(patience, func() bool { // the monitor has to read the registry first
		cmd := exec.Command(tools.outlive, "agent", "start", "talker")
		cmd.Env, cmd.Dir = s.agentEnv(), s.dir
		return cmd.Run() == nil
	}) {
		t.Fatal("the agent cannot be started")
	}
	x := newTmux(t, s, 80, 24, tools.outlive, "top")
	x.await(`talker +works`, patience)
	x.press("/", "talker")
	x.press("Enter", "t")
	x.await(`(?s)I talk.*I talk`, patience)
	x.await(`I talk`, patience)
	x.press(`C-\`)
	x.await(`you have left talker; it goes on`, patience)
	x.await(`▶ 3 Agents`, patience)
}
