package e2e

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// realServers are four servers that people run, with a file and a graph to look at.
func (w *workspace) realServers(t *testing.T) []backend {
	t.Helper()
	files := w.path("files")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(files, "note.txt"), []byte("a note on disk"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := func(name, pkg string, args ...string) backend {
		script := filepath.Join(tools.root, "node_modules", "@modelcontextprotocol", pkg, "dist", "index.js")
		return backend{name: name, server: server{name: pkg, match: script, argv: append([]string{tools.node, script}, args...)}}
	}
	memory := node("memory", "server-memory")
	memory.keys = []string{"env: {MEMORY_FILE_PATH: " + quoted(w.path("graph.jsonl")) + "}"}
	return []backend{
		node("everything", "server-everything", "stdio"), node("files", "server-filesystem", files), memory,
		{name: "py", server: servers()["py"]},
	}
}

// probe is a read-only call of one backend and a part of its answer.
type probe struct {
	tool string
	args map[string]any
	want string
}

func (w *workspace) probes() map[string]probe {
	return map[string]probe{
		"everything": {"everything_echo", map[string]any{"message": "hello"}, "Echo: hello"},
		"files":      {"files_read_text_file", map[string]any{"path": w.path("files/note.txt")}, "a note on disk"},
		"memory":     {"memory_search_nodes", map[string]any{"query": "outlive"}, "keeps servers alive"},
		"py":         {"py_look", map[string]any{"value": "probe"}, "look probe"},
	}
}

// check makes the call; any answer but the right one is an error.
func (p probe) check(s *session) error {
	_, ch := s.begin(step{"op": "call", "tool": p.tool, "args": p.args})
	select {
	case r := <-ch:
		if r.Error != nil || r.tool().IsError || !strings.Contains(r.text(), p.want) {
			return fmt.Errorf("%s: %s answered %s", s.client, p.tool, r)
		}
		return nil
	case <-time.After(patience + 15*time.Second):
		return fmt.Errorf("%s: %s was not answered", s.client, p.tool)
	}
}

// remember puts something into the graph that the probe of memory finds. Each client's server keeps the same file, so
// the clients do this one after the other.
func (s *session) remember(t *testing.T) {
	t.Helper()
	s.call(t, "memory_create_entities", map[string]any{"entities": []any{map[string]any{
		"name": "outlive", "entityType": "program", "observations": []string{"keeps servers alive"},
	}}})
}

// checkTools reads the list, which must have all of least in it, whatever is dead at the moment.
func (s *session) checkTools(t *testing.T, least []string) {
	t.Helper()
	names := s.toolNames(t)
	for _, name := range least {
		if !slices.Contains(names, name) {
			t.Errorf("%s: the list lacks %s: %v", s.client, name, names)
		}
	}
}

// firstTools reads the first list, which must have all of least in it, although the servers have only been started for it. A gateway
// waits 25 s for them: the door, which judges no time, takes a list that comes later, too.
func (s *session) firstTools(t *testing.T, least []string) {
	t.Helper()
	if full() {
		s.checkTools(t, least)
		return
	}
	var names []string
	if !eventually(func() bool {
		names = s.toolNames(t)
		return !slices.ContainsFunc(least, func(name string) bool { return !slices.Contains(names, name) })
	}) {
		t.Fatalf("%s: tools are %v, want at least %v", s.client, names, least)
	}
}

// toolsOfFour are one tool of each of the four servers.
var toolsOfFour = []string{"everything_echo", "files_read_text_file", "memory_read_graph", "py_look"}

// settledTools is the list once all four servers are in it, everything's late tools included.
func (s *session) settledTools(t *testing.T) []string {
	t.Helper()
	want := slices.Clone(toolsOfFour)
	if s.hello.Era == "legacy" {
		want = append(want, "everything_trigger-sampling-request") // it adds this one after the handshake
	}
	var names []string
	if !eventually(func() bool {
		names = s.toolNames(t)
		return !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(names, name) })
	}) {
		t.Fatalf("%s: tools are %v, want at least %v", s.client, names, want)
	}
	return names
}

// load calls every backend without regard to the others until the returned function is called, which tells how many calls
// that were and what went wrong.
func (s *session) load() (cease func() (int, []error)) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	var mu sync.Mutex
	calls, problems := 0, []error(nil)
	for _, p := range s.probes() {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
				}
				err := p.check(s)
				mu.Lock()
				calls++
				if err != nil {
					problems = append(problems, err)
				}
				mu.Unlock()
			}
		})
	}
	return func() (int, []error) {
		close(stop)
		wg.Wait()
		return calls, problems
	}
}

// killInTurn kills the processes of every backend, one backend after the other, while all clients call. Every call is
// answered, the next one of the same session too, and no list shrinks.
func (w *workspace) killInTurn(t *testing.T, backends []backend, sessions []*session) {
	t.Helper()
	least := map[*session][]string{}
	var ceases []func() (int, []error)
	for _, s := range sessions {
		least[s] = s.settledTools(t)
		ceases = append(ceases, s.load())
	}
	probes, rounds := w.probes(), 3
	if !full() {
		rounds = 1
	}
	for range rounds {
		for _, b := range backends {
			pids := w.serverPIDs(b.server)
			if len(pids) == 0 {
				t.Errorf("no process of %s to kill", b.name)
			}
			for _, pid := range pids {
				killed(t, pid)
			}
			for _, s := range sessions {
				s.checkTools(t, least[s])
				if err := probes[b.name].check(s); err != nil {
					t.Errorf("after a kill of %s: %v", b.name, err)
				}
			}
		}
	}
	for i, cease := range ceases {
		calls, problems := cease()
		t.Logf("%s: %d calls under way meanwhile", sessions[i].client, calls)
		for _, err := range problems {
			t.Error(err)
		}
	}
}

// useAll uses something of each server that only it can do.
func (s *session) useAll(t *testing.T) {
	t.Helper()
	s.remember(t)
	for _, name := range slices.Sorted(maps.Keys(s.probes())) {
		if err := s.probes()[name].check(s); err != nil {
			t.Error(err)
		}
	}
	r := s.do(t, step{"op": "call", "tool": "py_slow", "args": map[string]any{"value": "p", "steps": 4, "ms": 30}, "progress": true})
	if !slices.Equal(r.Progress, []float64{1, 2, 3, 4}) {
		t.Errorf("%s: progress %v of %s", s.client, r.Progress, r)
	}
	if r := s.do(t, step{"op": "read", "uri": document}); !strings.Contains(string(r.Result), "rchitecture") {
		t.Errorf("%s: read of a resource of everything: %s", s.client, r)
	}
	if r := s.do(t, step{"op": "read", "uri": item}); !strings.Contains(string(r.Result), "item ") {
		t.Errorf("%s: read of a resource of py: %s", s.client, r)
	}
	if r := s.do(t, step{"op": "prompts"}); !strings.Contains(string(r.Result), "py_hello") {
		t.Errorf("%s: prompts: %s", s.client, r)
	}
}

// gatewayDrivers are one client of each SDK, in the mode that it has by itself.
var gatewayDrivers = []string{"go", "ts1", "ts2-auto", "py-auto"}

// TestGatewayServersStdio: four servers behind one gateway on stdio, one client of each SDK in turn. The door has one of them here, and
// all in TestGatewayServersHTTP.
func TestGatewayServersStdio(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range gatewayDrivers {
		t.Run(name, func(t *testing.T) {
			onePerKind(t, name == "go")
			t.Parallel()
			w := newWorkspace(t)
			backends := w.realServers(t)
			s := w.join(t, gatewayClients()[name], w.stdioGateway(w.gatewayConfig(t, nil, backends...))...)
			s.firstTools(t, toolsOfFour)
			s.settledTools(t)
			s.useAll(t)
			w.killInTurn(t, backends, []*session{s})
			s.depart(t)
			w.noneLeft(t)
		})
	}
}

// TestGatewayServersHTTP: the same four with a client of each SDK at once on one gateway.
func TestGatewayServersHTTP(t *testing.T) {
	needOutlive(t)
	t.Parallel()
	w := newWorkspace(t)
	backends := w.realServers(t)
	g := w.listen(t, w.gatewayConfig(t, nil, backends...))
	var sessions []*session
	for _, name := range gatewayDrivers {
		s := w.join(t, gatewayClients()[name], g.url)
		s.settledTools(t)
		s.useAll(t)
		sessions = append(sessions, s)
	}
	w.killInTurn(t, backends, sessions)
	for _, s := range sessions {
		s.depart(t)
	}
	g.stop(t)
}

// TestGatewayInspector: the Inspector's command line on a gateway, over both transports.
func TestGatewayInspector(t *testing.T) {
	needOutlive(t)
	t.Parallel()
	w := newWorkspace(t)
	// The Inspector hands a server a few variables of its environment only, and that of py needs more.
	config := w.gatewayConfig(t, nil, w.realServers(t)[:3]...)
	g := w.listen(t, config)
	launcher := filepath.Join(tools.root, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js")
	for name, target := range map[string][]string{"stdio": w.stdioGateway(config), "http": {g.url}} {
		t.Run(name, func(t *testing.T) {
			argv := append(append([]string{launcher, "--cli"}, target...), "--method", "tools/call", "--tool-name", "everything_echo", "--tool-arg", "message=hello")
			foreignIn(t, argv...)
			cmd := exec.Command(tools.node, argv...)
			cmd.Env, cmd.Dir = w.env(), w.dir
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, stdout.Bytes(), stderr.Bytes())
			}
			if r := (reply{Result: stdout.Bytes()}); r.text() != "Echo: hello" {
				t.Errorf("echo: %s", stdout.Bytes())
			}
		})
	}
	g.stop(t)
}
