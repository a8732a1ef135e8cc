package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// revisions of the protocol that the conformance suite has frozen requirements for, and how many scenarios each requires.
var revisions = []struct {
	name           string
	server, client int
}{
	{"2025-11-25", 30, 18},
	{"2026-07-28", 37, 32},
}

// suite is the official conformance suite, installed by run.sh.
func suite(t *testing.T, file string) string {
	t.Helper()
	path := filepath.Join(tools.root, "conformance", "node_modules", file)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v (e2e/run.sh installs it)", err)
	}
	return path
}

// required reads the frozen list of scenarios that an implementation must pass; side is server or client.
func required(t *testing.T, side, revision string) []string {
	t.Helper()
	text, err := os.ReadFile(suite(t, "@modelcontextprotocol/conformance/requirements/"+revision+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	section := ""
	for line := range strings.Lines(string(text)) {
		if item, ok := strings.CutPrefix(line, "  - "); ok && section == side {
			names = append(names, strings.TrimSpace(item))
		} else if line[0] != ' ' && line[0] != '#' {
			section = strings.TrimSuffix(strings.TrimSpace(line), ":")
		}
	}
	return names
}

// score is what the suite says of one scenario.
type score struct {
	passed, failed int
	failures       []check
	said           string // by the client that the suite has run
}

// check is one of a scenario's checks as the suite stores it.
type check struct {
	ID      string          `json:"id"`
	Status  string          `json:"status"`
	Message string          `json:"errorMessage"`
	Details json.RawMessage `json:"details"`
}

func (s score) good() bool { return s.passed > 0 && s.failed == 0 }

func (s score) String() string {
	out := fmt.Sprintf("%d passed, %d failed", s.passed, s.failed)
	for _, c := range s.failures {
		out += fmt.Sprintf("\n\t%s: %s %.600s", c.ID, c.Message, c.Details)
	}
	if s.said != "" {
		out += "\nwhat the client has said:\n" + s.said
	}
	return out
}

var summaryLine = regexp.MustCompile(`(?m)^\S+ (\S+): (\d+) passed, (\d+) failed`)

// singleLine is what the suite says instead when it was asked for one scenario.
var singleLine = regexp.MustCompile(`(?m)^Passed: (\d+)/\d+, (\d+) failed`)

// runSuite runs the suite and returns the score of every scenario that it has run.
func (w *workspace) runSuite(t *testing.T, args ...string) map[string]score {
	t.Helper()
	dir, out, err := w.startSuite(t, args...)
	scores := map[string]score{}
	for _, m := range summaryLine.FindAllStringSubmatch(out, -1) {
		scores[m[1]] = scoreOf(dir, m[1], m[2], m[3])
	}
	if len(scores) == 0 {
		t.Fatalf("the suite has run nothing: %v\n%s", err, out)
	}
	return scores
}

// runScenario runs one scenario against a server.
func (w *workspace) runScenario(t *testing.T, name, url, revision string) score {
	t.Helper()
	dir, out, err := w.startSuite(t, "server", "--url", url, "--scenario", name, "--spec-version", revision)
	m := singleLine.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("the suite has not run %s: %v\n%s", name, err, out)
	}
	return scoreOf(dir, name, m[1], m[2])
}

func scoreOf(dir, scenario, passed, failed string) score {
	var s score
	s.passed, _ = strconv.Atoi(passed)
	s.failed, _ = strconv.Atoi(failed)
	if s.failed > 0 {
		s.failures, s.said = failures(dir, scenario)
	}
	return s
}

// startSuite runs the suite to its end and returns where it kept its checks and what it said. Its status repeats the scores.
func (w *workspace) startSuite(t *testing.T, args ...string) (dir, said string, err error) {
	t.Helper()
	if dir, err = os.MkdirTemp(w.dir, "suite-"); err != nil {
		t.Fatal(err)
	}
	argv := append([]string{suite(t, "@modelcontextprotocol/conformance/dist/index.js")}, append(args, "-o", dir)...)
	cmd := exec.Command(suite(t, "node/bin/node"), argv...)
	cmd.Dir = dir
	cmd.Env = append(w.env(), "OUTLIVE_BIN="+tools.outlive)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return dir, out.String(), err
}

// failures are the checks of a scenario that failed, and what the client has said. The suite keeps them in
// DIR/[server-]SCENARIO-DATE/.
func failures(dir, scenario string) (failed []check, said string) {
	for _, prefix := range []string{"server-", ""} {
		files, _ := filepath.Glob(filepath.Join(dir, prefix+scenario+"-20[0-9][0-9]-*", "checks.json"))
		for _, file := range files {
			var checks []check
			text, _ := os.ReadFile(file)
			_ = json.Unmarshal(text, &checks)
			for _, c := range checks {
				if c.Status == "FAILURE" {
					failed = append(failed, c)
				}
			}
			text, _ = os.ReadFile(filepath.Join(filepath.Dir(file), "stderr.txt"))
			said += string(text)
		}
	}
	return failed, said
}

// judge fails the test for every required scenario that has not passed, and tells the counts.
func judge(t *testing.T, names []string, scores map[string]score) {
	t.Helper()
	passed, checks, optional := 0, 0, 0
	for name, s := range scores {
		checks += s.passed
		if !slices.Contains(names, name) && s.good() {
			optional++
		}
	}
	for _, name := range names {
		s, ran := scores[name]
		switch {
		case !ran:
			t.Errorf("%s has not run", name)
		case !s.good():
			t.Errorf("%s: %s", name, s)
		default:
			passed++
		}
	}
	t.Logf("required %d of %d, not scored %d of %d, %d checks passed", passed, len(names), optional, len(scores)-len(names), checks)
}

// everythingServer builds the server that the Go SDK is tested with.
func everythingServer(t *testing.T) backend {
	t.Helper()
	bin := filepath.Join(tools.root, ".work", "bin", "conformance-server")
	if err := goBuild(tools.root, bin, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"); err != nil {
		t.Fatal(err)
	}
	return backend{name: "everything", server: server{name: "conformance", argv: []string{bin}, match: bin}}
}

// conformanceGateway is a gateway before the Go SDK's everything-server. Its names are the server's, because the suite
// asks for them. Without outlive it is that server itself, over HTTP.
func conformanceGateway(t *testing.T, w *workspace, revision string) *gateway {
	t.Helper()
	srv := everythingServer(t)
	if !direct() {
		return w.listen(t, w.gatewayConfig(t, []string{"names: never"}, srv))
	}
	address := freeAddress(t)
	cmd := exec.Command(srv.argv[0], "-http="+address, "-stateless="+strconv.FormatBool(revision >= "2026"))
	cmd.Env, cmd.Dir = w.env(), w.dir
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	awaitListener(t, address)
	return &gateway{workspace: w, url: "http://" + address + "/mcp", cmd: cmd}
}

// TestConformanceServer: the official suite over HTTP against the gateway, behind which a stdio server does the work.
func TestConformanceServer(t *testing.T) {
	for _, r := range revisions {
		t.Run(r.name, func(t *testing.T) {
			w := newWorkspace(t)
			g := conformanceGateway(t, w, r.name)
			names := required(t, "server", r.name)
			if len(names) != r.server {
				t.Fatalf("%d scenarios are required, want %d", len(names), r.server)
			}
			judge(t, names, w.runSuite(t, "server", "--url", g.url, "--requirements", r.name))
			if !direct() {
				g.stop(t)
			}
		})
	}
}

// TestConformanceClient: the official suite as the server behind the gateway, so that outlive's HTTP client is judged.
func TestConformanceClient(t *testing.T) {
	needOutlive(t)
	client := filepath.Join(tools.root, ".work", "bin", "conformance-client")
	if err := goBuild(tools.root, client, "./conformance/client"); err != nil {
		t.Fatal(err)
	}
	for _, r := range revisions {
		t.Run(r.name, func(t *testing.T) {
			w := newWorkspace(t)
			names := required(t, "client", r.name)
			if len(names) != r.client {
				t.Fatalf("%d scenarios are required, want %d", len(names), r.client)
			}
			judge(t, names, w.runSuite(t, "client", "--command", client, "--requirements", r.name))
			w.noneLeft(t)
		})
	}
}

// unknownOutcome is in every answer to a call whose server died while it ran.
const unknownOutcome = "may or may not have taken effect"

// TestConformanceUnderFire: the same with the server killed every 100 to 500 ms. A call that was running when its server
// died may be told so, which the suite takes for a failure; nothing else may fail. So a scenario that failed is played
// again. The pauses differ because a call that waits for the next server begins with it: at a fixed pace, a call that takes
// longer than what the start has left of the pause would be hit each time.
func TestConformanceUnderFire(t *testing.T) {
	needOutlive(t)
	const tries = 10
	for _, r := range revisions {
		t.Run(r.name, func(t *testing.T) {
			w := newWorkspace(t)
			g := conformanceGateway(t, w, r.name)
			fire := w.fire(t, everythingServer(t).server, 100*time.Millisecond, 500*time.Millisecond)
			names := required(t, "server", r.name)
			scores := w.runSuite(t, "server", "--url", g.url, "--requirements", r.name)
			hit, lost := 0, w.told(t, "request_lost")
			for _, name := range names {
				first := scores[name]
				for try := 1; try < tries && !scores[name].good(); try++ {
					scores[name] = w.runScenario(t, name, g.url, r.name)
				}
				if !first.good() {
					hit++
					t.Logf("hit in the first run: %s: %s", name, first)
				}
			}
			kills := fire()
			judge(t, names, scores)
			t.Logf("%d kills; in the first run %d calls of unknown outcome, %d of %d scenarios hit", kills, lost, hit, len(names))
			if hit > lost {
				t.Errorf("%d scenarios failed in the first run, with %d calls of unknown outcome: something else failed", hit, lost)
			}
			if kills < 5 {
				t.Errorf("only %d kills: the server was hardly under fire", kills)
			}
			g.stop(t)
		})
	}
}

// fire kills every process of a server after pauses of at least and at most so long, until the returned function is called,
// which tells how many died.
func (w *workspace) fire(t *testing.T, s server, least, most time.Duration) (cease func() int) {
	stop, kills, chance := make(chan struct{}), make(chan int), seeded(t, "fire")
	go func() {
		n := 0
		for {
			select {
			case <-stop:
				kills <- n
				return
			case <-time.After(least + time.Duration(chance.Int64N(int64(most-least)))):
				for _, pid := range w.serverPIDs(s) {
					if syscall.Kill(pid, syscall.SIGKILL) == nil {
						n++
					}
				}
			}
		}
	}()
	return func() int {
		close(stop)
		return <-kills
	}
}
