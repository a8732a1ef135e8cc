package monitor

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/agents/notify"
	"github.com/outlive-mcp/outlive/internal/agents/process"
	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
)

// act is the test binary in another role: words, of which the first is the role.
//
//	agent KIND …          an agent, see [agenttest.Act]
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
		return agenttest.Act(role[1:])
	}
	return 2
}

// fileSender is a human who reads a file, and a step at which we can be killed.
type fileSender struct {
	path string
	at   func(string)
}

func (s fileSender) Send(_ context.Context, m notify.Message) (string, error) {
	s.at("send-not-out")
	agenttest.AppendLine(s.path, strings.ReplaceAll(m.Text.Body, "\n", "|"))
	s.at("send-out")
	return "1", nil
}

// actMonitor runs one cycle on OUTLIVE_TEST_HOME and dies at a step; "-": it does not.
func actMonitor(at string, do func(*Monitor) error) int {
	home := os.Getenv("OUTLIVE_TEST_HOME")
	die := func(step string) {
		if step == at {
			agenttest.AppendLine(filepath.Join(home, "died"), step)
			_ = unix.Kill(os.Getpid(), unix.SIGKILL)
			select {}
		}
	}
	opts := Options{
		Home: home, Channels: map[string]notify.Channel{"telegram": fileSender{filepath.Join(home, "said"), die}}, checkpoint: die,
		Command: []string{os.Args[0]}, Environ: append(os.Environ(), agenttest.Role+"=agent", agenttest.Starts+"="+filepath.Join(home, "starts")),
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
	list, err := m.store.incidentsSince(ctx, time.Now().Add(-incidentsKept))
	if err != nil || len(list) != 1 {
		return fmt.Errorf("%d incidents, %w", len(list), err)
	}
	press := notify.Press{From: notify.From{Chat: 7, User: 7, Name: "@ann"}, Callback: notify.Callback{Incident: list[0].ID, Verb: "restart", Nonce: list[0].Nonce}}
	err = m.store.do(ctx, func(tx *sql.Tx) error {
		_, err := (&answers{m}).Press(ctx, tx, press)
		m.opts.checkpoint("pressing")
		return err
	})
	m.opts.checkpoint("pressed")
	return err
}

// identityOf is the zero identity for the dead.
func identityOf(pid int) process.Identity {
	p, err := process.System{}.Look(pid)
	if err != nil {
		return process.Identity{}
	}
	return p.Identity
}
