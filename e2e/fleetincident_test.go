package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// incidentOn has an agent of a machine end, and returns its incident as another machine sees it.
func incidentOn(t *testing.T, on, from *joined) string {
	t.Helper()
	agent := startSleepingAgent(t, on, "shop")
	monitor := on.command("monitor", "--answers", "off")
	monitor.Env = append(monitor.Env, "PIV_MONITOR_INTERVAL_MS=1000")
	on.begin(t, "monitor.log", monitor)
	on.says(t, "monitor.log", `Monitor cycle complete: 1 projects`)
	kill(t, agent.Process.Pid)
	_ = agent.Wait()
	var out []byte
	line := regexp.MustCompile(`(?m)^` + on.name + `/(\S+) +shop `)
	if !eventually(func() bool { out, _ = from.command("ack", "--fleet").Output(); return line.Match(out) }) {
		t.Fatalf("%s", out)
	}
	return line.FindStringSubmatch(string(out))[1]
}

// startSleepingAgent starts an agent that does nothing, and has the machine know it.
func startSleepingAgent(t *testing.T, on *joined, name string) *exec.Cmd {
	t.Helper()
	dir, home := on.path(name), on.path("state/outlive/agents")
	for _, d := range []string{dir, home} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	agent := exec.Command("sleep", "600")
	agent.Dir = dir // or it counts as somebody else's
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	for file, text := range map[string]string{
		filepath.Join(dir, "pid"):            fmt.Sprintln(agent.Process.Pid),
		filepath.Join(home, "registry.yaml"): "version: 2\nagents:\n  " + name + ": {kind: command, path: " + dir + ", match: {pidfile: pid}}\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return agent
}
