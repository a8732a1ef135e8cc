package monitor

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/notify"
	"github.com/outlive-mcp/outlive/internal/process"
)

// act is the test binary in another role: words, of which the first is the role.
//
//	agent                 says "ready" and lives on
//	agent stubborn        ignores SIGTERM
//	agent child           has a child; away: one in a session of its own, whose parent is gone
//	press STEP            presses Restart on the only incident, and is killed before or after the end of the transaction
//	monitor STEP          one cycle of a monitor that is killed, as by kill -9, at a step
func act(words string) int {
	role := strings.Fields(words)
	switch role[0] {
	case "monitor":
		return actMonitor(role[1], (*Monitor).once)
	case "press":
		return actMonitor(role[1], (*Monitor).press)
	case "agent":
		return actAgent(role[1:])
	}
	return 2
}

func actAgent(kind []string) int {
	if dir := os.Getenv("OUTLIVE_TEST_STARTS"); dir != "" {
		appendLine(dir, fmt.Sprintf("%d %s", os.Getpid(), os.Getenv("PIV_AUTONOMOUS_PREAMBLE")))
	}
	line := "ready"
	for _, k := range kind {
		switch k {
		case "stubborn":
			signal.Ignore(syscall.SIGTERM)
		case "child":
			line += " " + strconv.Itoa(spawn("agent stubborn", &syscall.SysProcAttr{}))
		case "away":
			// A shell in between ends at once, so the grandchild's parent is init, and its session its own.
			out, err := exec.Command("sh", "-c", `OUTLIVE_TEST_STARTS= OUTLIVE_TEST_ACTOR="agent stubborn" setsid "$0" </dev/null >/dev/null 2>&1 & echo $!`, os.Args[0]).Output()
			if err != nil {
				return 3
			}
			line += " " + strings.TrimSpace(string(out))
		}
	}
	fmt.Println(line)
	time.Sleep(2 * time.Minute) // nobody of a test that went wrong stays for ever
	return 0
}

func spawn(actor string, attr *syscall.SysProcAttr) int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "OUTLIVE_TEST_ACTOR="+actor, "OUTLIVE_TEST_STARTS=")
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		return 0
	}
	return cmd.Process.Pid
}

func appendLine(path, line string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.WriteString(line + "\n")
		_ = f.Close()
	}
}

// fileSender is a human who reads a file, and a step at which we can be killed.
type fileSender struct {
	path string
	at   func(string)
}

func (s fileSender) Send(_ context.Context, m notify.Message) (string, error) {
	s.at("send-not-out")
	appendLine(s.path, strings.ReplaceAll(m.Text.Body, "\n", "|"))
	s.at("send-out")
	return "1", nil
}

// actMonitor runs one cycle on OUTLIVE_TEST_HOME and dies at a step; "-": it does not.
func actMonitor(at string, do func(*Monitor) error) int {
	home := os.Getenv("OUTLIVE_TEST_HOME")
	die := func(step string) {
		if step == at {
			appendLine(filepath.Join(home, "died"), step)
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	opts := Options{
		Home: home, Channels: map[string]notify.Channel{"telegram": fileSender{filepath.Join(home, "said"), die}}, checkpoint: die,
		Command: []string{os.Args[0]}, Environ: append(os.Environ(), "OUTLIVE_TEST_ACTOR=agent", "OUTLIVE_TEST_STARTS="+filepath.Join(home, "starts")),
	}
	if os.Getenv("OUTLIVE_TEST_TELL") != "" {
		opts.Restarts = 1
	}
	m, err := Open(context.Background(), opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	err = do(m)
	_ = m.Close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (m *Monitor) once() error {
	_, err := m.Once(context.Background())
	return err
}

// press presses Restart, as the listener does.
func (m *Monitor) press() error {
	ctx := context.Background()
	list, err := m.store.incidents(ctx, time.Now())
	if err != nil || len(list) != 1 {
		return fmt.Errorf("%d incidents, %w", len(list), err)
	}
	press := notify.Press{From: notify.From{Name: "@ann"}, Callback: notify.Callback{Incident: list[0].ID, Verb: "restart", Nonce: list[0].Nonce}}
	err = m.store.do(ctx, func(tx *sql.Tx) error {
		_, err := (&answers{m}).Press(ctx, tx, press)
		m.opts.checkpoint("pressing")
		return err
	})
	m.opts.checkpoint("pressed")
	return err
}

// startAgent starts one, reaps it when it ends, and returns its number and those that it names.
func startAgent(t *testing.T, actor string, dir string, env ...string) []int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "OUTLIVE_TEST_ACTOR="+actor), env...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pids := []int{cmd.Process.Pid}
	for _, word := range strings.Fields(line)[1:] {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		for _, pid := range pids {
			if id := identityOf(pid); id != (process.Identity{}) {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		<-done
	})
	return pids
}

// identityOf is the zero identity for the dead.
func identityOf(pid int) process.Identity {
	p, err := process.System{}.Look(pid)
	if err != nil {
		return process.Identity{}
	}
	return p.Identity
}
