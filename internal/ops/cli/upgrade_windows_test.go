package cli

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// A gateway that cannot become another program says so, and goes on: outlive restart GATEWAY asks for that, too.
func TestAGatewayIsNotUpgradedHere(t *testing.T) {
	k := &sinks{log: logline.NewWriter(io.Discard, logline.Options{}), feed: control.NewFeed()}
	defer k.log.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	g := &endpoint{sinks: k, listener: listener, image: &image{sinks: k}}
	g.replace.front.Store(&streamhttp.Front{})
	if err := g.Upgrade(t.Context(), time.Second); !errors.Is(err, errNoExec) {
		t.Errorf("the upgrade ended with %v, want %v", err, errNoExec)
	}
	if g.replace.ready.Load() {
		t.Error("its servers were ended")
	}
}
