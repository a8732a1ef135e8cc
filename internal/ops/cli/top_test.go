package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/view/hosts"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// The key t joins terminals by the program of the hosts file, in the home that is shown. On this machine there is no ssh.
func TestTopJoinsTerminalsWhereTheyAre(t *testing.T) {
	set := hosts.NewSet([]hosts.Host{{Name: hosts.Local}, {Name: "far", Program: "/opt/outlive"}}, hosts.Options{Self: "/here/outlive"})
	f := topFlags{home: "/srv/agents"}
	local := f.attachCommand(set, overview.Agent{Host: hosts.Local, Key: hosts.Local + "/shop"})
	if diff := cmp.Diff([]string{"/here/outlive", "agent", "attach", "shop", "--home", "/srv/agents"}, local.Args); diff != "" {
		t.Error(diff)
	}
	far := strings.Join(f.attachCommand(set, overview.Agent{Host: "far", Key: "far/shop"}).Args, " ")
	if !strings.HasPrefix(far, "ssh -t ") || !strings.HasSuffix(far, " outlive '/opt/outlive' 'agent' 'attach' 'shop' '--home' '/srv/agents'") {
		t.Error(far)
	}
}
