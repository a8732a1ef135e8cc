package cli

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTheKeeperInitialisesLittle: the second process of a run initialises nothing that it never uses, such as the database. The runtime
// tells of each package that it has initialised.
func TestTheKeeperInitialisesLittle(t *testing.T) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "keeper socket")
	var told strings.Builder
	keeper := exec.Command("/proc/self/exe")
	keeper.Args = []string{"outlive-keeper"}
	keeper.Env = []string{"GODEBUG=inittrace=1"}
	keeper.ExtraFiles, keeper.Stderr = []*os.File{theirs}, &told
	err = keeper.Start()
	_ = theirs.Close()
	_ = unix.Close(pair[0]) // its outlive is gone, so it ends
	if err != nil {
		t.Fatal(err)
	}
	if err := keeper.Wait(); err != nil {
		t.Fatalf("%v: %s", err, told.String())
	}
	initialised := func(name string) bool { return strings.Contains(told.String(), "init "+name+" @") }
	if !initialised("os") {
		t.Fatalf("the runtime tells of no initialiser: %s", told.String())
	}
	for _, name := range []string{
		"modernc.org/sqlite/lib", "net/http", "crypto/tls", "go.yaml.in/yaml/v4/internal/libyaml",
		"github.com/outlive-mcp/outlive/internal/gateway/config", "github.com/outlive-mcp/outlive/internal/ops/cli",
	} {
		if initialised(name) {
			t.Errorf("the keeper initialises %s, of which it uses nothing", name)
		}
	}
}
