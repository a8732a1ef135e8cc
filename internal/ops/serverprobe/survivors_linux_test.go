package serverprobe

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A helper that the server started in a session of its own is told and ended; the server's own end is in order.
func TestLeftBehind(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("needs setsid of util-linux")
	}
	server := spec()
	script := `setsid sleep 4711 >/dev/null 2>&1 & exec "$@"`
	server.Argv = append([]string{"sh", "-c", script, "sh"}, server.Argv...)
	r := Run(t.Context(), server)
	if !r.Ready || !r.Looked || len(r.LeftBehind) != 1 || r.LeftBehind[0] != "sleep 4711" {
		t.Fatalf("%+v", r)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for {
		out, _ := exec.Command("ps", "-eo", "stat,args").Output()
		alive := false
		for line := range strings.Lines(string(out)) {
			alive = alive || strings.Contains(line, "sleep 4711") && !strings.HasPrefix(line, "Z")
		}
		if !alive {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it still runs")
		}
		time.Sleep(10 * time.Millisecond)
	}
}
