package serverprobe

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

func TestMain(m *testing.M) {
	mcptest.Reexec()
	os.Exit(m.Run())
}

func spec(flags ...string) Spec {
	argv, env := mcptest.Command(flags...)
	env = append(env, "GORACE=atexit_sleep_ms=0") // a second at each exit otherwise, when this binary has the detector
	return Spec{Argv: argv, Env: append(os.Environ(), env...), Timeout: 5 * time.Second, Grace: time.Second}
}

func TestRun(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name  string
		spec  Spec
		check func(t *testing.T, r Report)
	}{
		{"legacy", spec(), func(t *testing.T, r Report) {
			if !r.Found || !r.Ready || r.Era != mcp.Legacy || !r.Only || r.Version != "2025-11-25" || !strings.HasPrefix(r.Server, "mcptest") || r.ReadyAfter <= 0 || r.Stubborn {
				t.Errorf("%+v", r)
			}
		}},
		{"both eras", spec("-era", "dual"), func(t *testing.T, r Report) {
			if !r.Ready || r.Era != mcp.Modern || r.Only {
				t.Errorf("%+v", r)
			}
		}},
		{"modern", spec("-era", "modern"), func(t *testing.T, r Report) {
			if !r.Ready || r.Era != mcp.Modern || !r.Only || r.Version != mcp.ModernVersion || !strings.HasPrefix(r.Server, "mcptest") {
				t.Errorf("%+v", r)
			}
		}},
		{"dies of the question", spec("-probe", "exit"), func(t *testing.T, r Report) {
			if !r.Ready || r.Era != mcp.Legacy {
				t.Errorf("%+v", r)
			}
		}},
		{"does not answer the question", func() Spec { s := spec("-probe", "silent"); s.ProbeTimeout = 300 * time.Millisecond; return s }(), func(t *testing.T, r Report) {
			if !r.Ready || r.Era != mcp.Legacy {
				t.Errorf("%+v", r)
			}
		}},
		{"noise on stdout", spec("-garbage"), func(t *testing.T, r Report) {
			if !r.Ready || r.Garbage == 0 || r.GarbageLine == "" {
				t.Errorf("%+v", r)
			}
		}},
		{"fails to start", spec("-fail-start-file", broken), func(t *testing.T, r Report) {
			if !r.Found || r.Ready || len(r.Stderr) < 2 || !strings.Contains(r.Problem, "ended before it had answered the handshake (exit status 3)") {
				t.Errorf("%+v", r)
			}
		}},
		{"does not end with its stdin", spec("-ignore-eof", "-ignore-term"), func(t *testing.T, r Report) {
			if !r.Ready || !r.Stubborn || len(r.Stderr) > 0 {
				t.Errorf("%+v", r)
			}
		}},
		{"is not a server", func() Spec {
			s := spec("-slow-start", "1m")
			s.Timeout, s.Grace = 400*time.Millisecond, 100*time.Millisecond
			return s
		}(), func(t *testing.T, r Report) {
			if !r.Found || r.Ready || !strings.Contains(r.Problem, "no answer to the handshake within 400ms") || r.Hint == "" || r.Stubborn {
				t.Errorf("%+v", r)
			}
		}},
		{"not found", Spec{Argv: []string{"no-such-server"}}, func(t *testing.T, r Report) {
			if r.Found || r.Ready || !strings.Contains(r.Problem, "command not found: no-such-server") {
				t.Errorf("%+v", r)
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Run(t.Context(), tc.spec)
			tc.check(t, r)
			if len(r.LeftBehind) > 0 {
				t.Errorf("left behind: %q", r.LeftBehind)
			}
		})
	}
}

// Whoever does not want to wait gets the report at once, and no process stays.
func TestRunEndsWithItsContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	Run(t.Context(), spec()) // what package child starts once and for all
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := time.Now()
	r := Run(ctx, spec("-slow-start", "10m", "-ignore-term"))
	if r.Ready || !strings.Contains(r.Problem, "canceled") {
		t.Errorf("%+v", r)
	}
	tier.Within(t, "the end of a canceled run", time.Since(before), 4*time.Second)
}

// Anything that a server may print is read, and lines that are not messages are told.
func FuzzHear(f *testing.F) {
	f.Add([]byte("Server ready\n"))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"serverInfo":{"name":"x"}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":7}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		p := &process{answers: make(chan answer, 1)}
		p.hear(line)
		lines, first, _ := p.said()
		if strings.ContainsAny(first, "\x00\x1b\n\r") || len(first) > keptLine+len("…") {
			t.Errorf("a line that is not fit to be shown: %q", first)
		}
		select {
		case a := <-p.answers:
			a.serverName()
			if lines > 0 {
				t.Error("a line that is both an answer and garbage")
			}
		default:
		}
	})
}
