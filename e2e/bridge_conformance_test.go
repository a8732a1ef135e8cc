package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// bridgedRevision is one run of the official suite with a client of one era and a server of the other one only.
type bridgedRevision struct {
	revision string // the client's
	era      string // the server's, and its only one
	required int
	beyond   map[string]string // scenarios that no bridge can pass, and what the protocol says about it
}

func (r bridgedRevision) name() string { return r.revision + "×" + r.era }

var bridgedRevisions = []bridgedRevision{
	{revision: "2025-11-25", era: "modern", required: 30},
	{revision: "2026-07-28", era: "legacy", required: 37, beyond: map[string]string{
		"server-stateless": "what clients can be asked is said once for a connection of the legacy era, so a server that many share hears of " +
			"all that any of them may declare, and cannot refuse a request (-32021) whose own client has declared less",
		"input-required-result-basic-elicitation": "a question of the legacy era has no name, and the suite wants the one that the server " +
			"gives it in the modern era (`user_name`)",
	}},
}

// TestBridgeConformance: the official suite speaks one era, the only server behind the gateway the other one. What the
// revision requires must pass, but for what the other era has no means for; that list holds exactly what fails.
func TestBridgeConformance(t *testing.T) {
	needFull(t, "the official suites take minutes")
	needOutlive(t)
	for _, r := range bridgedRevisions {
		t.Run(r.name(), func(t *testing.T) {
			w := newWorkspace(t)
			g := w.listen(t, w.gatewayConfig(t, []string{"names: never"}, oneEraServer(t, r.era)))
			names := required(t, "server", r.revision)
			if len(names) != r.required {
				t.Fatalf("%d scenarios are required, want %d", len(names), r.required)
			}
			scores := w.runSuite(t, "server", "--url", g.url, "--requirements", r.revision)
			for name, reason := range r.beyond {
				if scores[name].good() {
					t.Errorf("%s has passed, although it is said to be beyond a bridge: %s", name, reason)
				}
			}
			judge(t, slices.DeleteFunc(names, func(name string) bool { return r.beyond[name] != "" }), scores)
			g.stop(t)
		})
	}
}

// oneEraServer builds the Go SDK's everything-server for one era only. Its source is the SDK's but for the versions
// that it speaks; its tools ask as the era does (conformance/testdata/asking.go, rounds.go).
func oneEraServer(t *testing.T, era string) backend {
	t.Helper()
	versions := `"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"`
	half := "rounds.go"
	edits := []string{"}, testInputRequiredMultiRoundHandler)", "}, inTwoRounds)"}
	if era == "modern" {
		half, edits = "asking.go", nil
		versions = `"2026-07-28"`
		edits = append(edits, "req.Session.Elicit(ctx, ", "elicit(req, ", "req.Session.CreateMessage(ctx, ", "sample(req, ",
			"// Register server features.\n", "refuse(server)\n")
		for _, tool := range []string{"testSamplingHandler", "testElicitationHandler", "testElicitationDefaultsHandler", "testElicitationEnumsHandler"} {
			edits = append(edits, "}, "+tool+")", "}, asking("+tool+"))")
		}
	}
	const options = "opts := &mcp.ServerOptions{\n"
	edits = append(edits, options, options+"\t\tSupportedProtocolVersions: []string{"+versions+"},\n")
	source, err := os.ReadFile(filepath.Join(goModule(t, "github.com/modelcontextprotocol/go-sdk"), "conformance", "everything-server", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(string(source), edits[i]) {
			t.Fatalf("the Go SDK's everything-server has no %q any more", edits[i])
		}
	}
	dir := t.TempDir() // go build wants its files in one folder
	copied := func(name string, text []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	text, err := os.ReadFile(filepath.Join(tools.root, "conformance", "testdata", half))
	if err != nil {
		t.Fatal(err)
	}
	files := []string{copied("main.go", []byte(strings.NewReplacer(edits...).Replace(string(source)))), copied(half, text)}
	bin := filepath.Join(tools.root, ".work", "bin", "conformance-"+era)
	cmd := exec.Command("go", append([]string{"build", "-o", bin}, files...)...)
	cmd.Dir = tools.root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the %s server: %v\n%s", era, err, out)
	}
	return backend{name: "everything", server: server{name: "conformance-" + era, argv: []string{bin}, match: bin}}
}

// goModule is the folder of a module that the tests depend on.
func goModule(t *testing.T, path string) string {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", path)
	cmd.Dir = tools.root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("find the module %s: %v", path, err)
	}
	return strings.TrimSpace(string(out))
}
