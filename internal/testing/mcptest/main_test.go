package mcptest

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	Reexec()
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // for our children: a second at each exit otherwise, with the detector
	goleak.VerifyTestMain(m)
}

// patience bounds every wait; nothing here comes near it.
const patience = 2 * time.Minute

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// buffer is a stderr that may be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// inProcess runs the server in this process over pipes. Its end is part of the test's clean-up.
func inProcess(t *testing.T, flags ...string) *Client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan int, 1)
	stderr := &buffer{}
	go func() {
		code := ServerMain(flags, inR, outW, stderr)
		_ = inR.Close()
		_ = outW.Close()
		done <- code
	}()
	c := NewClient(Join(outR, inW))
	t.Cleanup(func() {
		_ = c.Close()
		if code := <-done; code != 0 {
			t.Errorf("server: exit %d, stderr:\n%s", code, stderr)
		}
	})
	return c
}

// ready is inProcess after the legacy handshake.
func ready(t *testing.T, flags ...string) *Client {
	t.Helper()
	c := inProcess(t, flags...)
	handshake(t, c)
	return c
}

func handshake(t *testing.T, c *Client) {
	t.Helper()
	if _, err := c.Initialize(testContext(t), "2025-11-25"); err != nil {
		t.Fatalf("initialize: %v", err)
	}
}

// spawn runs the server as a process of its own.
func spawn(t *testing.T, flags ...string) (*Process, *buffer) {
	t.Helper()
	argv, env := Command(flags...)
	stderr := &buffer{}
	p, err := Spawn(argv, env, stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p, stderr
}

func mustTool(t *testing.T, c *Client, name string, args any) string {
	t.Helper()
	r, err := c.Tool(testContext(t), name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if r.IsError {
		t.Fatalf("%s: tool error %s", name, r.Text)
	}
	return r.Text
}

func mustVerify(t *testing.T, c *Client) {
	t.Helper()
	if err := c.Verify(); err != nil {
		t.Errorf("the client saw: %v", err)
	}
}

func wantExit(t *testing.T, p *Process, want int) {
	t.Helper()
	code, err := p.ExitCode(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if code != want {
		t.Errorf("exit %d, want %d", code, want)
	}
}

func fileLines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
}
