//go:build unix

package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

var chaosKills = flag.Int("chaos.kills", 60, "how often TestChaos kills the server")

const callers = 64

// calledLine finds the line that a call in a server's log carries.
var calledLine = regexp.MustCompile(`"line":"(c[0-9]+-[0-9]+)"`)

// fates counts how the calls of one kind ended.
type fates struct {
	ok, unknown, refused int
	unlogged             int // unknown, and the server had read it without yet having noted it
}

// chaos is 64 callers of one proxy whose server is killed repeatedly.
type chaos struct {
	*run
	t          *testing.T
	dir        string
	stop       chan struct{}
	mu         sync.Mutex
	ended      map[string]string // how each call ended, by its line: ok, unknown, no
	kinds      map[string]string // tool, by its line
	unexpected []string
}

// TestChaos kills the server with SIGKILL at random moments under 64 concurrent calls. Each call gets exactly one
// answer under its id, byte for byte; none that must not be repeated runs twice; none that is answered is lost; and
// each that is answered as of unknown outcome had really been sent to the server.
func TestChaos(t *testing.T) {
	tier.NeedFull(t, "64 callers meet kills at random moments")
	c := &chaos{t: t, dir: t.TempDir(), stop: make(chan struct{}), ended: map[string]string{}, kinds: map[string]string{}}
	argv, _ := mcptest.Command("-log", filepath.Join(c.dir, "log"), "-starts", filepath.Join(c.dir, "starts"))
	c.run = start(t, argv)
	ctx, cancel := context.WithTimeout(t.Context(), 20*patience)
	defer cancel()
	if _, err := c.client.Initialize(ctx, "2025-11-25"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.client.Call(ctx, "tools/list", nil); err != nil {
		t.Fatal(err)
	}
	chance := tier.Rand(t)
	var all sync.WaitGroup
	for n := range callers {
		own := rand.New(rand.NewPCG(chance.Uint64(), 0))
		all.Go(func() { c.calls(ctx, n, own) })
	}
	gen := c.waitReady(t, -1)
	for range *chaosKills {
		time.Sleep(time.Duration(chance.IntN(30_000)) * time.Microsecond) // the moment is the point; nothing waits on it
		c.kill(ctx)
		gen = c.waitReady(t, gen)
	}
	close(c.stop)
	all.Wait()
	if err := c.client.Verify(); err != nil {
		t.Errorf("the client saw: %v", err)
	}
	c.end(t)
	c.judge()
}

// kill ends the server that runs now.
func (c *chaos) kill(ctx context.Context) {
	c.t.Helper()
	s, err := c.proxy.Status(ctx)
	if err != nil || s.ServerPID == 0 {
		c.t.Fatalf("status: %+v, %v", s, err)
	}
	if err := syscall.Kill(s.ServerPID, syscall.SIGKILL); err != nil {
		c.t.Fatalf("kill %d: %v", s.ServerPID, err)
	}
}

// nameOfCall is what the i-th call of caller n is known by, and its id: each of a shape that a careless relay would
// change. With its newline a line has 16 bytes, so that no line crosses a page: there a write of a process that is killed may
// end, and the next process would write on behind half a line.
func nameOfCall(n, i int) (line, id string) {
	line = fmt.Sprintf("c%02d-%011d", n, i)
	return line, []string{fmt.Sprintf(`"%s"`, line), fmt.Sprintf("%d", n<<20+i), fmt.Sprintf("%d.50", n<<20+i),
		fmt.Sprintf(`"\u00e9 %s"`, line), fmt.Sprint(1_500_000_000 + n<<20 + i)}[i%5]
}

// calls is one caller: one call after the other, with ids of various forms.
func (c *chaos) calls(ctx context.Context, n int, chance *rand.Rand) {
	for i := 0; ; i++ {
		select {
		case <-c.stop:
			return
		default:
		}
		line, id := nameOfCall(n, i)
		tool := []string{"bump", "bump", "idem", "read"}[chance.IntN(4)]
		args := map[string]any{"path": filepath.Join(c.dir, tool), "line": line}
		if chance.IntN(3) == 0 {
			args["ms"] = chance.IntN(20)
		}
		result, err := c.client.CallID(ctx, id, "tools/call", map[string]any{"name": tool, "arguments": args})
		how := fate(result, err)
		c.mu.Lock()
		c.ended[line], c.kinds[line] = how, tool
		if how == "" {
			c.unexpected = append(c.unexpected, fmt.Sprintf("%s %s: %s, %v", tool, line, result, err))
		}
		c.mu.Unlock()
		if errors.Is(err, mcptest.ErrClosed) || ctx.Err() != nil {
			return
		}
	}
}

// fate says how a call ended: ok, unknown, no (not delivered), or "" when it ended otherwise.
func fate(result json.RawMessage, err error) string {
	var rpc *mcptest.RPCError
	switch {
	case errors.As(err, &rpc):
		if strings.Contains(string(rpc.Data), `"delivered":"no"`) {
			return "no"
		}
		return ""
	case err != nil:
		return ""
	case strings.Contains(string(result), mcp.MetaOutcome):
		return "unknown"
	case strings.Contains(string(result), `"isError":true`):
		return ""
	}
	return "ok"
}

// judge compares the callers' answers with what the servers did.
func (c *chaos) judge() {
	c.t.Helper()
	noted := map[string]bool{}
	for _, m := range calledLine.FindAllStringSubmatch(readAll(c.t, filepath.Join(c.dir, "log")), -1) {
		noted[m[1]] = true
	}
	total := map[string]*fates{}
	for _, tool := range []string{"bump", "idem", "read"} {
		total[tool] = &fates{}
		done := map[string]int{}
		for _, line := range strings.Fields(readAll(c.t, filepath.Join(c.dir, tool))) {
			done[line]++
		}
		for line, kind := range c.kinds {
			if kind == tool {
				total[tool].add(c.t, tool, line, c.ended[line], done[line], noted[line])
			}
		}
		c.t.Logf("%s: %d ok, %d outcome unknown (%d of them read by a server that died before it noted them), %d not delivered",
			tool, total[tool].ok, total[tool].unknown, total[tool].unlogged, total[tool].refused)
	}
	starts := len(strings.Fields(readAll(c.t, filepath.Join(c.dir, "starts"))))
	if starts != *chaosKills+1 {
		c.t.Errorf("%d processes for %d kills", starts, *chaosKills)
	}
	if total["bump"].ok < callers || total["read"].ok < callers {
		c.t.Errorf("hardly any call went well: %+v", total)
	}
	for i, u := range c.unexpected {
		if i < 10 {
			c.t.Errorf("unexpected answer to %s", u)
		}
	}
}

// add checks one call: done is how often it was carried out.
func (f *fates) add(t *testing.T, tool, line, how string, done int, logged bool) {
	t.Helper()
	most := 2
	if tool == "bump" {
		most = 1
	}
	if done > most {
		t.Errorf("%s %s was carried out %d times", tool, line, done)
	}
	switch how {
	case "ok":
		f.ok++
		if done == 0 {
			t.Errorf("%s %s was answered and never carried out", tool, line)
		}
	case "unknown":
		f.unknown++
		if !logged {
			f.unlogged++
		}
	case "no":
		f.refused++
		if done > 0 && tool == "bump" {
			t.Errorf("%s %s was carried out and said not to be delivered", tool, line)
		}
	}
}

func readAll(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
