package process

import (
	"os"
	"os/exec"
	"testing"

	"github.com/outlive-mcp/outlive/internal/testing/faults"
)

// This binary is run as a victim as well, without pidfds; what it is then must not get as far as TestMain.
func init() { faults.VictimIfAsked() }

// What the kernel, or a sandbox such as an older container engine's, does not let have pidfds is ended all the same.
func TestStopWithoutPidfds(t *testing.T) {
	const inside = "OUTLIVE_TEST_WITHOUT_PIDFDS"
	if os.Getenv(inside) == "" {
		cmd := exec.Command(os.Args[0], faults.VictimArg, "nopidfd", os.Args[0], "-test.run=^TestStopWithoutPidfds$")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait() // it ends by a signal
	}()
	if err := (System{}).Stop(t.Context(), Target{Leaders: []Identity{identityOf(cmd.Process.Pid)}}); err != nil {
		t.Error(err)
		_ = cmd.Process.Kill()
	}
	<-reaped
}
