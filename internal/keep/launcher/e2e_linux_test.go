package launcher

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// endToEndVar lets the tests with real launchers run. They fetch packages from public registries, which takes a minute
// and a network that not every machine has.
const endToEndVar = "OUTLIVE_E2E"

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n"

// answer starts a real server, says initialize and returns the answer and how long both took together.
func answer(t *testing.T, dir string, env, argv []string) (*started, string, time.Duration) {
	t.Helper()
	begun := time.Now()
	s := start(t, dir, env, argv)
	if _, err := s.stdin.WriteString(initialize); err != nil {
		t.Fatal(err)
	}
	line := s.line(t)
	return s, line, time.Since(begun)
}

func TestRealLaunchers(t *testing.T) {
	if os.Getenv(endToEndVar) == "" {
		t.Skipf("fetches packages from public registries: set %s to run it", endToEndVar)
	}
	const everything = "@modelcontextprotocol/server-everything"
	project := `[project]
name = "demo"
version = "0"
requires-python = ">=3.10"
dependencies = ["mcp-server-time"]
`
	for _, tc := range []struct {
		line    string
		ratio   float64 // maximum ratio of a direct start to one through the launcher; 0: no limit
		project bool
	}{
		{"npx -y " + everything, 0.4, false},
		{"npm exec -y -- " + everything + " stdio", 0.4, false},
		{"sh -c exec|npx|-y|" + everything, 0.4, false},
		{"uvx mcp-server-time", 0, false},
		{"uv tool run --from mcp-server-time mcp-server-time", 0, false},
		{"uv run mcp-server-time", 0, true},
		{"uv run python -m mcp_server_time", 0, true},
	} {
		t.Run(tc.line, func(t *testing.T) {
			asked := strings.Fields(tc.line)
			for i, w := range asked {
				asked[i] = strings.ReplaceAll(w, "|", " ")
			}
			if _, err := exec.LookPath(asked[0]); err != nil {
				t.Skipf("%s is not installed", asked[0])
			}
			dir, home := t.TempDir(), t.TempDir()
			env := append(os.Environ(), "npm_config_cache="+filepath.Join(home, "npm"), "UV_CACHE_DIR="+filepath.Join(home, "uv"))
			if tc.project {
				write(t, filepath.Join(dir, "pyproject.toml"), project)
			}
			first, want, fetched := answer(t, dir, env, asked) // fills the cache
			first.end()
			var c Command
			var through, direct []time.Duration
			for range 5 {
				s, _, took := answer(t, dir, env, asked)
				through = append(through, took)
				begun := time.Now()
				var err error
				if c, err = s.resolve(); err != nil {
					t.Fatal(err)
				}
				t.Logf("resolved in %v", time.Since(begun))
				s.end()
				s, got, took := answer(t, c.Dir, c.Environment(env), c.Argv)
				direct = append(direct, took)
				s.end()
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("(-launched +direct):\n%s", diff)
				}
			}
			// Other work on the machine only adds to a time, so the shortest ones compare best.
			ratio := float64(slices.Min(direct)) / float64(slices.Min(through))
			t.Logf("first %v, then through the launcher %v, direct %v: ratio %.2f; argv %q", fetched, through, direct, ratio, c.Argv)
			if tc.ratio > 0 && ratio > tc.ratio {
				t.Errorf("a direct start takes %.2f of one through the launcher, wanted at most %.2f", ratio, tc.ratio)
			}
		})
	}
}
