package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// listenAgain starts the gateway anew at its address.
func (g *gateway) listenAgain(t *testing.T) *gateway {
	t.Helper()
	return g.listenBy(t, g.cmd.Args)
}

// killed ends the gateway with SIGKILL, and waits until its servers have ended too.
func (g *gateway) killed(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-g.ended
}

// TestSessionsOutliveTheGateway: clients of real SDKs go on after their gateway was killed, and after it was stopped and
// started, with their session, its subscription and its log level. None of them begins a new session by itself.
func TestSessionsOutliveTheGateway(t *testing.T) {
	t.Parallel()
	needOutlive(t)
	for _, name := range []string{"ts1", "py-legacy", "go-legacy"} {
		for _, shared := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/shared=%v", name, shared), func(t *testing.T) {
				onePerKind(t, shared == (name == "py-legacy"))
				t.Parallel()
				w := newWorkspace(t)
				used := backend{name: "used", server: servers()["go-legacy"], keys: []string{fmt.Sprint("shared: ", shared)}}
				other := backend{name: "other", server: servers()["go"], keys: []string{"bridge: off"}}
				g := w.listenBy(t, append(w.stdioGateway(w.gatewayConfig(t, nil, used, other)), "--listen", freeAddress(t)))
				s := w.join(t, gatewayClients()[name], g.url)
				if names := s.toolNames(t); !slices.Contains(names, "used_echo") || !slices.Contains(names, "other_echo") {
					t.Fatalf("tools are %v", names)
				}
				s.do(t, step{"op": "subscribe", "uri": item})
				s.do(t, step{"op": "level", "level": "error"})
				if !eventually(func() bool { return w.remembered() == 2 }) { // a server that is known need not be started again
					t.Fatalf("what the servers show is not kept: %s", w.known())
				}
				for _, how := range []string{"SIGKILL", "SIGTERM", "an upgrade", "SIGKILL"} {
					switch how {
					case "SIGKILL":
						g.killed(t)
						g = g.listenAgain(t)
					case "SIGTERM":
						g.stop2(t)
						g = g.listenAgain(t)
					default:
						g.upgrade(t)
					}
					text := "after " + how
					if !eventually(func() bool { // the client may still wait for an answer on its old connection
						_, ch := s.begin(step{"op": "call", "tool": "used_echo", "args": map[string]any{"text": text}})
						r := s.await(t, text, ch)
						return r.Error == nil && r.text() == text
					}) {
						t.Fatalf("%s: the client does not go on", text)
					}
					from := s.mark()
					if !eventually(func() bool {
						s.call(t, "used_touch", map[string]any{"uri": item})
						return within(500*time.Millisecond, func() bool {
							return slices.ContainsFunc(s.seen(from), notification("notifications/resources/updated", item))
						})
					}) {
						t.Errorf("%s: subscribed and not told; it saw %v", text, s.seen(from))
					}
					// One process of the other server is for clients of the modern era.
					if !eventually(func() bool { return w.onlyOf(other.server) <= 1 }) {
						t.Errorf("%s: %d processes of a server that nobody has asked for", text, w.onlyOf(other.server))
					}
				}
				s.do(t, step{"op": "close"})
				select {
				case <-s.driver.exited():
				case <-time.After(patience):
					t.Error("the client does not end")
				}
				g.stop(t)
			})
		}
	}
}

// remembered is of how many servers the resources that they show legacy clients are kept for later runs.
func (w *workspace) remembered() (n int) {
	for _, text := range w.known() {
		if bytes.Contains(text, []byte(`"legacy resources"`)) {
			n++
		}
	}
	return n
}

// known is what is kept of each server for later runs.
func (w *workspace) known() (all [][]byte) {
	files, _ := filepath.Glob(w.path("state/outlive/known/*.json"))
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			all = append(all, text)
		}
	}
	return all
}

// stop2 ends the gateway as a service manager does while clients are still there.
func (g *gateway) stop2(t *testing.T) {
	t.Helper()
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.ended:
	case <-time.After(patience):
		t.Fatal("the gateway does not end on SIGTERM")
	}
}

// upgrade has the gateway become the program on disk.
func (g *gateway) upgrade(t *testing.T) {
	t.Helper()
	cmd := exec.Command(tools.outlive, "upgrade", "gateway")
	cmd.Env = g.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("upgrade: %v %s", err, out)
	}
}

// TestUpgradeOfAGatewayUnderLoad: clients call all the time, on connections that stay open and on new ones, while the gateway
// becomes another process image several times. Each call is answered once, and none is refused.
func TestUpgradeOfAGatewayUnderLoad(t *testing.T) {
	needFull(t, "upgrades under load")
	needOutlive(t)
	w := newWorkspace(t)
	g := w.listenBy(t, append(w.stdioGateway(w.gatewayConfig(t, []string{"names: never"}, backend{name: "s", server: servers()["go-legacy"], keys: []string{"shared: true"}})),
		"--listen", freeAddress(t)))
	stop := make(chan struct{})
	var done sync.WaitGroup
	var calls atomic.Int64
	var slowest atomic.Int64
	for n := range 8 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: n%2 == 0}, Timeout: patience}
		s := &rawSession{client: client, url: g.url}
		s.mustHave(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, `"protocolVersion"`)
		done.Go(func() {
			for {
				select {
				case <-stop:
					client.CloseIdleConnections()
					return
				default:
				}
				text, begun := fmt.Sprintf("client %d call %d", n, calls.Add(1)), time.Now()
				s.mustHave(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`, text), text)
				slowest.Store(max(slowest.Load(), int64(time.Since(begun))))
				time.Sleep(time.Millisecond)
			}
		})
	}
	for range 5 {
		before := calls.Load()
		g.upgrade(t)
		if !eventually(func() bool { return calls.Load() > before+50 }) {
			t.Error("the clients do not go on")
		}
	}
	close(stop)
	done.Wait()
	t.Logf("%d calls, the longest took %v", calls.Load(), time.Duration(slowest.Load()))
	g.stop(t)
}

// rawSession is one client of the legacy era over plain HTTP.
type rawSession struct {
	client *http.Client
	url    string
	id     string
}

func (s *rawSession) post(line string) (status int, text string, err error) {
	r, err := http.NewRequest("POST", s.url, strings.NewReader(line))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if s.id != "" {
		r.Header.Set("Mcp-Session-Id", s.id)
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" {
		s.id = id
	}
	return resp.StatusCode, string(body), err
}

// mustHave posts a line that is answered with the text.
func (s *rawSession) mustHave(t *testing.T, line, want string) {
	if status, text, err := s.post(line); err != nil || status >= 300 || !strings.Contains(text, want) {
		t.Errorf("%s: %d %.300s %v", line, status, text, err)
	}
}

// thousand is how many sessions one gateway has at once.
const thousand = 1000

// ownProcess is how many of them use a server that gives each session a process of its own, beside the one for clients of
// the modern era.
const ownProcess, modernOne = 3, 1

// TestAThousandSessionsOutliveTheGateway: it is killed and started again, and all of them go on, the first within 2 s. Only the
// servers run that were asked for something.
func TestAThousandSessionsOutliveTheGateway(t *testing.T) {
	needFull(t, "a thousand sessions, and how soon the first goes on")
	needOutlive(t)
	w := newWorkspace(t)
	shared := backend{name: "shared", server: servers()["go-legacy"], keys: []string{"shared: true"}}
	own := backend{name: "own", server: servers()["go"], keys: []string{"bridge: off"}}
	g := w.listenBy(t, append(w.stdioGateway(w.gatewayConfig(t, []string{"limits: {sessions: 1000, session_release: 1s}"}, shared, own)), "--listen", freeAddress(t)))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience}
	all := make([]*rawSession, thousand)
	each := func(do func(n int, s *rawSession)) {
		var done sync.WaitGroup
		next := make(chan int)
		for range 16 {
			done.Go(func() {
				for n := range next {
					do(n, all[n])
				}
			})
		}
		for n := range all {
			next <- n
		}
		close(next)
		done.Wait()
	}
	for n := range all {
		all[n] = &rawSession{client: client, url: g.url}
	}
	each(func(n int, s *rawSession) {
		s.mustHave(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c%d","version":"1"}}}`, n), `"protocolVersion"`)
		s.mustHave(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "")
		s.mustHave(t, `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`, `"result"`)
	})
	if t.Failed() {
		t.FailNow()
	}
	g.killed(t)
	begun := time.Now()
	g = g.listenAgain(t)
	up := time.Since(begun)
	all[0].mustHave(t, echoCall("shared", 0), "session 0")
	first := time.Since(begun)
	each(func(n int, s *rawSession) { s.mustHave(t, echoCall("shared", n), fmt.Sprint("session ", n)) })
	every := time.Since(begun)
	for n := range ownProcess {
		all[n].mustHave(t, echoCall("own", n), fmt.Sprint("session ", n))
	}
	t.Logf("listening %v after its start, first answer after %v, an answer to each of %d sessions after %v", up, first, thousand, every)
	if first > 2*time.Second {
		t.Errorf("the first answer came %v after the start", first)
	}
	if !eventually(func() bool {
		return len(w.serverPIDs(shared.server)) == 1 && w.onlyOf(own.server) == ownProcess+modernOne
	}) {
		t.Errorf("processes of the shared server: %d, of the other one: %d; want 1 and %d", len(w.serverPIDs(shared.server)), w.onlyOf(own.server), ownProcess+modernOne)
	}
	if entries, err := os.ReadDir(w.path("state/outlive/gateway/sessions")); err != nil || len(entries) != 1 {
		t.Errorf("the store: %v, %v", entries, err)
	}
	stranger := &rawSession{client: client, url: g.url, id: "NOBODYHASEVERSEENTHISONE"}
	if status, text, err := stranger.post(echoCall("shared", 0)); status != 404 {
		t.Errorf("an unknown session: %d %s %v", status, text, err)
	}
	client.CloseIdleConnections()
	g.stop(t)
}

// onlyOf is how many processes have exactly the command line of a server: another one's may begin with it.
func (w *workspace) onlyOf(s server) (n int) {
	for _, line := range w.processes(s.match) {
		if line == strings.Join(s.argv, " ") {
			n++
		}
	}
	return n
}

func echoCall(server string, n int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"%s_echo","arguments":{"text":"session %d"}}}`, server, n)
}
