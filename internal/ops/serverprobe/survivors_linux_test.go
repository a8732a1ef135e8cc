package serverprobe

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/await"
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
	if !r.Ready || !r.Looked || len(r.LeftBehind) != 1 || r.LeftBehind[0] != "sleep 4711" {
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
