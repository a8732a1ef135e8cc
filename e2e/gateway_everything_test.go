package e2e

import (
	"os/exec"
	"testing"
)

// TestGatewayEverything: the reference server over HTTP with every client: what a server may ask of its client, and what
// it says by itself, all on the streams of the gateway. Without outlive the server speaks HTTP itself. Clients of both eras
// have it translated by a gateway; TestBridge makes its trials with them.
func TestGatewayEverything(t *testing.T) {
	t.Parallel()
	names := []string{"go-legacy", "ts1", "ts2-legacy", "py-legacy"}
	if direct() {
		names = append(names, "go", "py-auto")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			onePerKind(t, name == "ts1" || name == "py-legacy")
			t.Parallel()
			w := newWorkspace(t)
			everythingOverHTTP(t, gatewayClients()[name], everythingGateway(t, w))
		})
	}
}

// TestGatewayOfOneServer: the same of a gateway that has no file, with its default settings.
func TestGatewayOfOneServer(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range []string{"ts1", "py-legacy", "go-legacy"} {
		t.Run(name, func(t *testing.T) {
			onePerKind(t, name == "go-legacy")
			t.Parallel()
			everythingOverHTTP(t, gatewayClients()[name], newWorkspace(t).listenOne(t, servers()["everything"]))
		})
	}
}

func everythingOverHTTP(t *testing.T, c client, g *gateway) {
	t.Helper()
	s := g.join(t, c, g.url)
	s.server = servers()["everything"]
	s.checkEra(t, c)
	s.firstTools(t, []string{"echo"}) // although the server says four times meanwhile that its list has changed
	from := s.everythingFirst(t)
	if !direct() {
		s.everythingUnderFire(t)
	}
	for _, e := range s.seen(from) {
		if e.Method == "notifications/tools/list_changed" {
			t.Errorf("told of a change of tools over restarts that changed none")
		}
	}
	s.do(t, step{"op": "unsubscribe", "uri": document})
	s.depart(t)
	if !direct() {
		g.stop(t)
	}
}

// everythingGateway is a gateway with that server only, under the server's own names.
func everythingGateway(t *testing.T, w *workspace) *gateway {
	t.Helper()
	srv := servers()["everything"]
	if !direct() {
		return w.listen(t, w.gatewayConfig(t, []string{"names: never"}, backend{name: "everything", server: srv}))
	}
	address := freeAddress(t)
	return &gateway{workspace: w, url: "http://" + address + "/mcp", cmd: w.everythingServer(t, address, "streamableHttp")}
}

// everythingServer starts that server where it speaks HTTP itself.
func (w *workspace) everythingServer(t *testing.T, address, transport string) *exec.Cmd {
	t.Helper()
	srv := servers()["everything"]
	argv := append(srv.argv[:len(srv.argv)-1:len(srv.argv)-1], transport)
	foreignIn(t, argv...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = append(w.env(), "PORT="+portOf(t, address)), w.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	awaitListener(t, address)
	return cmd
}
