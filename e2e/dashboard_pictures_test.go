package e2e

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// pictureLimit is how large a picture of the documentation may be, and pictureLeast how small one that shows something, in bytes.
const pictureLimit, pictureLeast = 100 << 10, 10 << 10

// prepared is a script that gives the agents of the pictures a night: agent by agent when each stood how, and what was done.
const prepared = `
import datetime, json, sqlite3, sys, time
now = int(time.time() * 1000)
minute = 60 * 1000
def iso(ms): return datetime.datetime.fromtimestamp(ms / 1000, datetime.timezone.utc).isoformat()
db = sqlite3.connect(sys.argv[1])
db.execute("INSERT INTO watched VALUES (?, ?)", (now - 21 * 60 * minute, now - 14 * 60 * minute))
db.execute("INSERT INTO watched VALUES (?, ?)", (now - 13 * 60 * minute, now - minute))
def stood(agent, ago, standing, kind, details=""):
    db.execute("INSERT INTO verdict VALUES (?, ?, ?)", (agent, now - ago * minute, json.dumps({"standing": standing, "class": kind, "details": details})))
for agent in ("shop", "docs", "refactor"):
    stood(agent, 21 * 60, "well", "working")
stood("docs", 500, "wrong", "crashed", "its process has ended, exit code 137")
stood("docs", 498, "well", "working")
stood("docs", 220, "wrong", "rate_limited", "its account's limit, resets in 45 min")
stood("docs", 175, "well", "working")
stood("refactor", 300, "rests", "paused")
stood("refactor", 120, "well", "working")
def act(agent, ago, rung, kind, helped):
    data = {"act": {"agent": agent, "at": iso(now - ago * minute), "rung": rung, "class": kind, "stall": kind, "phase": 0, "sequence": 1, "proved": iso(now - helped * minute)},
            "entry": {}, "rule": "", "details": "", "used": 0, "max": 3, "target": {}, "run": ""}
    db.execute("INSERT INTO recovery (project, stall, phase, at, step, data) VALUES (?, ?, 0, ?, 'recovered', ?)", (agent, kind, now - ago * minute, json.dumps(data)))
act("docs", 499, "restart", "crashed", 498)
act("docs", 176, "nudge", "rate_limited", 175)
db.commit()
`

// pictured starts a machine as the documentation shows it: real servers and agents, with a day that was prepared.
func pictured(t *testing.T) *scene {
	t.Helper()
	s := &scene{workspace: newWorkspace(t)}
	server := s.path("mcp-files") // its path is in the pictures
	if err := os.Symlink(tools.goserver, server); err != nil {
		t.Fatal(err)
	}
	s.server = connectRaw(t, s.workspace, []string{tools.outlive, "run", "--name", "files", "--restart-delay", "0", "--", server})
	startRaw(t, s.workspace, []string{tools.outlive, "run", "--name", "github", "--", "sh", "-c", "echo GITHUB_TOKEN is not set >&2; exit 3"})
	for n := range 24 {
		s.server.await(t, s.server.begin("echo", map[string]any{"text": fmt.Sprint(n)}), patience)
	}
	s.server.await(t, s.server.begin("look", map[string]any{"value": "x", "ms": 300}), patience)
	s.server.await(t, s.server.begin("fail", map[string]any{}), patience)
	s.server.await(t, s.server.begin("die", map[string]any{}), patience)
	s.prepareRestarts(t)
	s.prepareCurve(t)

	home := filepath.Join(s.path("state"), "outlive", "agents") // commands on the page need no --home
	var registry strings.Builder
	registry.WriteString("version: 2\nagents:\n")
	for _, name := range []string{"shop", "docs", "refactor"} {
		if err := os.Mkdir(s.path(name), 0o700); err != nil {
			t.Fatal(err)
		}
		run := "echo $$ > pid && exec sleep 600"
		fmt.Fprintf(&registry, "  %s: {kind: command, path: %s, match: {pidfile: pid}, start: {cmd: [sh, -c, %q]}, policy: {crashed: [escalate]}}\n", name, s.path(name), run)
		agent := s.start(t, "sh", "-c", "cd "+name+" && "+run)
		if name == "shop" {
			s.agent = agent
		}
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "registry.yaml"), []byte(registry.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.outlive(t, "monitor", "--once")
	if out, err := exec.Command(tools.python, "-c", prepared, filepath.Join(home, "monitor.db")).CombinedOutput(); err != nil {
		t.Fatalf("the night is not prepared: %v\n%s", err, out)
	}
	s.start(t, tools.outlive, "monitor")
	s.openDashboard(t, "--control")
	return s
}

// curveOf is a minute of the server, by how many have passed since 20 hours ago, as a control socket tells it: calls, errors, p50, p99,
// memory and processors. It was called all evening, was slow for a while, and rested at night.
func curveOf(minute int) []float64 {
	switch {
	case minute >= 60 && minute < 150:
		return []float64{float64(18 + minute%5), 1, 0.8, 4.2, 14e6, 0.7}
	case minute < 240 || minute >= 900:
		return []float64{float64(20 + minute%7), 0, 0.05, 0.3, 11e6, 0.2} // it uses as much now, which the overview shows
	}
	return []float64{0, 0, 0, 0, 10e6, 0}
}

// prepareCurve has the outlive of the server tell how that did before both were started: at its socket listens one that answers for its
// curves, and passes all else on.
func (s *scene) prepareCurve(t *testing.T) {
	t.Helper()
	first := time.Now().Add(-20*time.Hour).Unix() / 60
	socket := filepath.Join(s.path("run"), "outlive", fmt.Sprintf("files.%d.sock", s.server.cmd.Process.Pid))
	behind := s.path("files.sock")
	if err := os.Rename(socket, behind); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "outlive"})
	pass.FlushInterval = -1 // an event is passed on when it comes
	pass.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", behind)
	}}
	mux := http.NewServeMux()
	mux.Handle("/", pass)
	mux.HandleFunc("GET /v1/curves", func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // a number, or before all
		begin, points := max(first, after+1), [][]float64{}
		for minute := begin; minute < time.Now().Unix()/60; minute++ {
			points = append(points, curveOf(int(minute-first)))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"files": map[string]any{"first": begin, "points": points}}) // whoever asks may have gone
	})
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(listener) }() // it ends by Close
	t.Cleanup(func() { _ = server.Close() })
}

// prepareRestarts writes restarts of the last day into the audit log.
func (s *scene) prepareRestarts(t *testing.T) {
	t.Helper()
	var b strings.Builder
	for _, r := range []struct {
		ago, took           time.Duration
		cause, asks, reason string
	}{
		{20 * time.Hour, 40 * time.Millisecond, "requested", "tool", "new code"},
		{11 * time.Hour, 900 * time.Millisecond, "crash", "none", "exit 137"},
		{10*time.Hour + 30*time.Minute, 1300 * time.Millisecond, "crash", "none", "exit 137"},
		{4 * time.Hour, 35 * time.Millisecond, "watch", "file", "main.go"},
	} {
		for _, e := range []struct {
			at         time.Duration
			kind, more string
		}{{0, "restart_initiated", fmt.Sprintf(`,"source":%q,"reason":%q`, r.asks, r.reason)}, {r.took, "restart_completed", fmt.Sprintf(`,"restart_duration_ms":%d`, r.took.Milliseconds())}} {
			fmt.Fprintf(&b, `{"timestamp":%q,"level":"INFO","logger":"mcp_proxy","message":%q,"event_type":%q,"proxy_pid":%d,"server_pid":1,"generation":1,"cause":%q%s}`+"\n",
				time.Now().Add(e.at-r.ago).UTC().Format("2006-01-02T15:04:05.000Z"), "A "+strings.ReplaceAll(e.kind, "_", " "), e.kind, s.server.cmd.Process.Pid, r.cause, e.more)
		}
	}
	dir := filepath.Join(s.path("state"), "outlive", "audit")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "prepared.jsonl"), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The documentation's pictures, of each page in light, dark and narrow. E2E_PICTURES names the directory that they are written to, such as
// docs/dashboard; without it they are looked at and thrown away.
func TestDashboardPictures(t *testing.T) {
	needFull(t, "it makes pictures of all pages, for the documentation")
	needOutlive(t)
	dir := cmp.Or(os.Getenv("E2E_PICTURES"), t.TempDir())
	s := pictured(t)
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.link), chromedp.WaitVisible(chromedp.CSS("#servers")))
	awaitText(t, ctx, "GITHUB_TOKEN is not set", patience)
	kill(t, s.agent.Process.Pid)
	_ = s.agent.Wait()
	awaitText(t, ctx, "shop has crashed", patience)
	address := seen(t, ctx, chromedp.Location())
	for name, at := range map[string]string{
		"overview": address, "incidents": address + "incidents", "events": address + "events", "agent": address + "agent/docs", "server": s.pageOf(t, ctx, address, "files"),
	} {
		for look, width := range map[string]int64{"light": 1100, "dark": 1100, "narrow": 360} {
			colour := cmp.Or(map[string]string{"dark": "dark"}[look], "light")
			do(t, ctx, scheme(colour, width), chromedp.Navigate(at), chromedp.WaitVisible(chromedp.CSS("main section")))
			s.keepPicture(t, ctx, filepath.Join(dir, name+"-"+look+".png"))
		}
	}
}

func (s *scene) keepPicture(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	do(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("pre.log").forEach(e => e.style.maxHeight = "8rem");
		document.querySelectorAll(".wide").forEach(e => e.style.contentVisibility = "visible")`)) // a picture has all that is laid out only when it comes into view
	small, err := paletted(seen(t, ctx, chromedp.FullScreenshot(100)), 1300)
	if err != nil {
		t.Fatal(err)
	}
	if len(small) > pictureLimit {
		t.Errorf("%s has %d bytes, more than %d", filepath.Base(path), len(small), pictureLimit)
	}
	if len(small) < pictureLeast {
		t.Errorf("%s has %d bytes: it shows next to nothing", filepath.Base(path), len(small))
	}
	if err := os.WriteFile(path, small, 0o644); err != nil {
		t.Fatal(err)
	}
}

// paletted makes a PNG one of 64 colours, and no higher than that: those of a page are few, and what lies between is of letters' edges.
func paletted(text []byte, high int) ([]byte, error) {
	full, err := png.Decode(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	area := full.Bounds()
	area.Max.Y = min(area.Max.Y, area.Min.Y+high)
	often := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(full.At(x, y)).(color.RGBA) }
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			often[at(x, y)]++
		}
	}
	byUse := slices.SortedFunc(maps.Keys(often), func(a, b color.RGBA) int {
		return cmp.Or(often[b]-often[a], cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	var palette color.Palette
	for _, c := range byUse[:min(64, len(byUse))] {
		palette = append(palette, c)
	}
	index := map[color.RGBA]uint8{}
	small := image.NewPaletted(area, palette)
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			c := at(x, y)
			n, known := index[c]
			if !known {
				n = uint8(palette.Index(c))
				index[c] = n
			}
			small.SetColorIndex(x, y, n)
		}
	}
	var out bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)
	return out.Bytes(), err
}
