package process

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/testing/agenttest"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(agenttest.Role); role != "" {
		kinds := strings.Fields(role)[1:]
		if isLeaderless() {
			actWithoutLeader(kinds)
		}
		os.Exit(agenttest.Act(kinds))
	}
	goleak.VerifyTestMain(m)
}

var asNobody = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
