package serverprobe

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/outlive-mcp/outlive/internal/testing/await"
	"github.com/outlive-mcp/outlive/internal/testing/proc"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

// A helper that the server started in a session of its own is told and ended; the server's own end is in order.
func TestLeftBehind(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid of util-linux")
	}
	server := spec()
	// The server starts once the helper has left its process group: one that is still in it ends with the server.
	script := `setsid sleep 4711 >/dev/null 2>&1 &
		until [ "$(ps -o args= -p $!)" = "sleep 4711" ]; do sleep 0.01; done
		exec "$@"`
	server.Argv = append([]string{"sh", "-c", script, "sh"}, server.Argv...)
	r := Run(t.Context(), server)
	if !r.Ready || len(r.LeftBehind) != 1 || r.LeftBehind[0] != "sleep 4711" {
		t.Fatalf("%+v", r)
	}
	await.Until(t, "the helper has ended", func() bool {
		out, err := exec.Command("ps", "-eo", "stat,args").Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "sleep 4711") && !strings.HasPrefix(line, "Z") {
				return false
			}
		}
		return true
	})
}

// A server that cannot be killed, such as one that runs as another user, does not keep doctor from its report. Here nobody tells of its
// end: the keeper is stopped.
func TestAServerThatCannotBeKilledIsGivenUp(t *testing.T) {
	p, err := startProcess(spec("-ignore-eof", "-ignore-term").withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	keeper := 0
	for _, pid := range proc.Children(os.Getpid()) {
		if argv := proc.Argv(pid); len(argv) > 0 && argv[0] == "outlive-keeper" {
			keeper = pid
		}
	}
	if keeper == 0 {
		p.end(time.Millisecond)
		t.Skip("there is no keeper to be silent: the kernel or container has no pidfds or refuses subreapers")
	}
	if err := unix.Kill(keeper, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	willing := make(chan bool, 1)
	go func() { willing <- p.end(time.Millisecond) }()
	select {
	case was := <-willing:
		if was {
			t.Error("its closed stdin was enough")
		}
	case <-time.After(tier.Limit(20 * time.Second)):
		t.Error("it is waited for")
	}
	if err := unix.Kill(keeper, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-p.gone
}
