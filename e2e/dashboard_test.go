package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// onScreen is how soon a page shows what has changed.
const onScreen = 2 * time.Second

// scene is a machine with servers, an agent, a monitor and a dashboard.
type scene struct {
	*workspace
	link      string
	server    *raw
	agent     *exec.Cmd
	dashboard *exec.Cmd
	monitor   *exec.Cmd
}

// outlive runs a verb, and returns what it prints.
func (s *scene) outlive(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(tools.outlive, args...)
	cmd.Env, cmd.Dir = s.agentEnv(), s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("outlive %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// agentEnv has no channels, and no agents but those of the scene.
func (s *scene) agentEnv() []string {
	return append(s.env(), "TELEGRAM_BOT_TOKEN=", "TELEGRAM_CHAT_ID=", "CLAUDE_CONFIG_DIR="+s.path("none"), "CODEX_HOME="+s.path("none"))
}

func (s *scene) start(t *testing.T, argv ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = s.agentEnv(), s.dir
	said, err := os.OpenFile(s.path("stderr.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // that a failure shows
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// newScene starts everything; one server works, one cannot start, and one agent runs.
func newScene(t *testing.T, flags ...string) *scene {
	t.Helper()
	if direct() {
		t.Skip("E2E_DIRECT=1 leaves outlive out, and the page is of outlive: run it without")
	}
	s := &scene{workspace: newWorkspace(t)}
	everything := filepath.Join(tools.root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js")
	s.server = connectRaw(t, s.workspace, []string{tools.outlive, "run", "--name", "works", "--restart-delay", "0", "--", tools.node, everything, "stdio"})
	startRaw(t, s.workspace, []string{tools.outlive, "run", "--name", "broken", "--", "sh", "-c", "echo GITHUB_TOKEN is not set >&2; exit 3"})
	if err := os.Mkdir(s.path("shop"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.outlive(t, "agent", "add", "shop", "--kind", "command", "--path", "shop", "--pidfile", "pid")
	s.agent = s.start(t, "sh", "-c", "cd shop && echo $$ > pid && exec sleep 600")
	s.monitor = s.start(t, tools.outlive, "monitor")
	s.openDashboard(t, flags...)
	return s
}

// openDashboard starts the dashboard, and takes the link that it prints.
func (s *scene) openDashboard(t *testing.T, flags ...string) {
	t.Helper()
	cmd := exec.Command(tools.outlive, append([]string{"dashboard", "--listen", "127.0.0.1:0"}, flags...)...)
	cmd.Env, cmd.Dir = s.agentEnv(), s.dir
	line, err := bufio.NewReader(untilInterrupted(t, cmd)).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.link, s.dashboard = strings.TrimSpace(line), cmd
}

// untilInterrupted starts a command that goes on until it is interrupted, at the end of the test, and returns what it prints.
func untilInterrupted(t *testing.T, cmd *exec.Cmd) io.Reader {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGCONT) // a test may have stopped it
		_ = cmd.Process.Signal(os.Interrupt)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", strings.Join(cmd.Args, " "), err)
		}
	})
	return out
}

// browser is a tab of a headless Chromium.
func browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("chromium is missing: e2e/install.sh installs it")
	}
	foreign(t, "Chromium")
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), opts...) // the test's own has ended when a failure is told
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as this context
		t.Fatal(err)
	}
	keepFailed(t, ctx)
	return ctx
}

func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// seen has the browser answer a question.
func seen[T any](t *testing.T, ctx context.Context, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// tell sends the browser a command of its protocol.
func tell[P any](cmd cdp.Command[P, cdp.Empty], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cmd, params)
		return err
	})
}

// keepFailed keeps what a failed test has seen last: a picture and the page's source, where E2E_SHOTS names a directory, and in the
// output where the page was.
func keepFailed(t *testing.T, ctx context.Context) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() || ctx.Err() != nil {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		source, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + " " + document.title + " " + document.readyState + "\n" + document.documentElement.outerHTML`))
		if err != nil {
			t.Logf("the page cannot be read: %v", err)
			return
		}
		t.Logf("the page at the end: %s", source)
		if png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100)); err == nil && os.Getenv("E2E_SHOTS") != "" {
			_ = os.WriteFile(filepath.Join(os.Getenv("E2E_SHOTS"), "failed-"+t.Name()+".png"), png, 0o644)
		}
	})
}

// content is what a page says; nothing while another one is being loaded.
func content(t *testing.T, ctx context.Context) string {
	t.Helper()
	return seen(t, ctx, chromedp.Evaluate[string](`document.body?.innerText ?? ""`))
}

// awaitText waits until a page says something, and returns how long that took.
func awaitText(t *testing.T, ctx context.Context, want string, limit time.Duration) time.Duration {
	t.Helper()
	begun := time.Now()
	if !within(limit, func() bool { return strings.Contains(content(t, ctx), want) }) {
		t.Errorf("the page does not say %q within %s:\n%s", want, limit, content(t, ctx))
	}
	return time.Since(begun)
}

// shoot keeps a picture in E2E_SHOTS, where somebody wants pictures.
func shoot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	dir := os.Getenv("E2E_SHOTS")
	if dir == "" {
		return
	}
	png := seen(t, ctx, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkAccess has axe-core look at the page.
func checkAccess(t *testing.T, ctx context.Context, what string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(tools.root, "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	do(t, ctx, chromedp.Evaluate[chromedp.Void](string(source)+";0"))
	found := seen(t, ctx, chromedp.Evaluate[string](`axe.run(document).then(r =>
		JSON.stringify(r.violations.map(v => [v.id, v.help, v.nodes.map(n => n.html + " " + n.failureSummary)])))`, chromedp.EvalAwaitPromise))
	if found != "[]" {
		t.Errorf("%s: axe-core finds %s", what, found)
	}
}

// scheme is how a person likes pages: light or dark, and how wide the screen is.
func scheme(colour string, width int64) chromedp.Action[chromedp.Void] {
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: colour}}}
	return chromedp.Steps(tell(emulation.SetEmulatedMedia, media), chromedp.EmulateViewport(width, 900))
}

// The door does not judge how soon a page shows what has happened, and looks at no page in all its forms.
func TestDashboardShowsWhatHappens(t *testing.T) {
	besideOthers(t)
	onScreen := inFull(onScreen)
	s := newScene(t, "--control")
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.link), chromedp.WaitVisible(chromedp.CSS("#servers")))
	awaitText(t, ctx, "GITHUB_TOKEN is not set", patience)
	awaitText(t, ctx, "ready", patience)
	awaitText(t, ctx, "shop", patience)
	address, heading := seen(t, ctx, chromedp.Location()), seen(t, ctx, chromedp.Text(chromedp.CSS("h1")))
	if strings.Contains(address, "token") || heading != "Overview" {
		t.Errorf("the page is %s, %q", address, heading)
	}

	// A server is killed while the page is open.
	restarts := `[...document.querySelectorAll("#servers tr")].find(r => r.innerText.includes("works"))?.children[5].innerText ?? ""`
	kill(t, s.pidOf(t, "works"))
	begun := time.Now()
	var shown string
	if !within(onScreen, func() bool {
		shown = seen(t, ctx, chromedp.Evaluate[string](restarts))
		return shown == "1"
	}) {
		t.Errorf("restarts of the killed server on the page after %s: %q", onScreen, shown)
	}
	t.Logf("the kill of the server was on the page after %s", time.Since(begun))

	// An agent is killed.
	begun = time.Now()
	_ = s.agent.Process.Kill()
	_ = s.agent.Wait()
	awaitText(t, ctx, "has crashed", onScreen-time.Since(begun))
	t.Logf("the end of the agent was on the page after %s", time.Since(begun))
	awaitText(t, ctx, "shop has crashed", patience) // the incident, from the monitor
	title := seen(t, ctx, chromedp.Title())
	if !strings.HasPrefix(title, "(") || !strings.Contains(title, "!)") {
		t.Errorf("the title counts nothing: %q", title)
	}

	if full() {
		s.lookAtPages(t, ctx, address)
	}

	// Buttons: a server is restarted, the incident is acknowledged.
	do(t, ctx, scheme("light", 1280), chromedp.Navigate(s.pageOf(t, ctx, address, "works")))
	press(t, ctx, "Restart works")
	awaitText(t, ctx, "works was restarted in", patience)
	do(t, ctx, chromedp.Navigate(address+"incidents"))
	press(t, ctx, "Acknowledge")
	awaitText(t, ctx, "acknowledged until", patience)
	checkAccess(t, ctx, "incidents, acknowledged")
}

// press clicks a button as a person does: at its place on the screen, whatever element is there by then.
func press(t *testing.T, ctx context.Context, label string) {
	t.Helper()
	at := placeOf(t, ctx, label)
	do(t, ctx, chromedp.MouseClickXY(at[0], at[1]))
}

// placeOf is where a button is on the screen.
func placeOf(t *testing.T, ctx context.Context, label string) []float64 {
	t.Helper()
	place := fmt.Sprintf(`(() => {
		const b = [...document.querySelectorAll("form button")].find(b => b.innerText.startsWith(%q));
		if (!b) return [];
		b.scrollIntoView({block: "center"});
		const r = b.getBoundingClientRect();
		return [r.x + r.width / 2, r.y + r.height / 2];
	})()`, label)
	var at []float64
	if !eventually(func() bool {
		at = seen(t, ctx, chromedp.Evaluate[[]float64](place))
		return len(at) == 2
	}) {
		t.Fatalf("there is no button %q on %s:\n%s", label, seen(t, ctx, chromedp.Location()), content(t, ctx))
	}
	return at
}

// A button that somebody holds down while what is around it changes does what it says when it is released.
func TestDashboardButtonHeld(t *testing.T) {
	t.Parallel()
	s := newScene(t, "--control")
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.link), chromedp.WaitVisible(chromedp.CSS("#servers")))
	do(t, ctx, chromedp.Navigate(s.pageOf(t, ctx, seen(t, ctx, chromedp.Location()), "works")))
	at := placeOf(t, ctx, "Restart works")
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	updates := `performance.getEntriesByName("update").length`
	before := seen(t, ctx, chromedp.Evaluate[int](updates))
	kill(t, s.pidOf(t, "works"))
	if !eventually(func() bool { return seen(t, ctx, chromedp.Evaluate[int](updates)) > before }) {
		t.Fatal("the page has heard of nothing")
	}
	do(t, ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, at[0], at[1], chromedp.ButtonLeft, chromedp.ClickCount(1)))
	awaitText(t, ctx, "works was restarted in", patience)
}

// pageOf is the address of a server's page, from its link.
func (s *scene) pageOf(t *testing.T, ctx context.Context, address, name string) string {
	t.Helper()
	do(t, ctx, chromedp.Navigate(address), chromedp.WaitVisible(chromedp.CSS("#servers")))
	var at string
	if !eventually(func() bool {
		at = seen(t, ctx, chromedp.Evaluate[string](fmt.Sprintf(`[...document.querySelectorAll("#servers a")].find(a => a.innerText == %q)?.href ?? ""`, name)))
		return at != ""
	}) {
		t.Fatalf("the overview has no server %q:\n%s", name, content(t, ctx))
	}
	return at
}

// lookAtPages looks at every page in light, dark and narrow.
func (s *scene) lookAtPages(t *testing.T, ctx context.Context, address string) {
	t.Helper()
	pages := map[string]string{
		"overview": address, "incidents": address + "incidents", "events": address + "events", "agent": address + "agent/shop",
		"server": s.pageOf(t, ctx, address, "works"), "broken": s.pageOf(t, ctx, address, "broken"),
	}
	for name, at := range pages {
		for _, look := range []struct {
			name, colour string
			width        int64
		}{{"light", "light", 1280}, {"dark", "dark", 1280}, {"narrow", "light", 320}} {
			do(t, ctx, scheme(look.colour, look.width), chromedp.Navigate(at), chromedp.WaitVisible(chromedp.CSS("main")))
			checkAccess(t, ctx, name+", "+look.name)
			if seen(t, ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > window.innerWidth`)) {
				t.Errorf("%s, %s: it is wider than the screen", name, look.name)
			}
			if name == "overview" && !seen(t, ctx, chromedp.Evaluate[bool](`document.querySelector("#attention p a").getBoundingClientRect().bottom < 500`)) {
				t.Errorf("%s: what is wrong is not named on the first screen", look.name)
			}
			shoot(t, ctx, name+"-"+look.name)
		}
	}
}

func TestDashboardWithoutJavaScript(t *testing.T) {
	needFull(t, "the door looks at the dashboard with scripts, which is a browser less")
	s := newScene(t)
	ctx := browser(t)
	do(t, ctx, tell(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(s.link), chromedp.WaitVisible(chromedp.CSS("#servers")))
	text := ""
	said := func(want string) func() bool {
		return func() bool { // what was not there yet comes when the page loads itself again, and then there is no page for a moment
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			if got, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("main"))); err == nil {
				text = got
			}
			return strings.Contains(text, want)
		}
	}
	for _, want := range []string{"works", "broken", "shop"} {
		if !eventually(said(want)) {
			t.Errorf("without scripts the page does not say %q:\n%s", want, text)
		}
	}
	refresh := seen(t, ctx, chromedp.OuterHTML(chromedp.CSS("head")))
	if !strings.Contains(refresh, `http-equiv="refresh"`) || strings.Contains(text, "Restart") {
		t.Errorf("it does not load itself again, or has buttons without --control:\n%s", refresh)
	}
}

// The page turns grey, and says so, when nothing is heard of its server any more.
func TestDashboardThatIsLost(t *testing.T) {
	needFull(t, "it waits for the time after which a page says that it hears nothing")
	s := newScene(t)
	ctx := browser(t)
	do(t, ctx, chromedp.Navigate(s.link), chromedp.WaitVisible(chromedp.CSS("#servers")))
	awaitText(t, ctx, "s ago", patience)
	if err := s.dashboard.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if !eventually(func() bool { return seen(t, ctx, chromedp.Evaluate[bool](`document.body.classList.contains("lost")`)) }) {
		t.Error("the page does not turn grey")
	}
	awaitText(t, ctx, "connection lost", patience)
	title := seen(t, ctx, chromedp.Title())
	if !strings.HasPrefix(title, "(?)") {
		t.Errorf("the title is %q", title)
	}
	shoot(t, ctx, "lost")
}

// Whoever has not the token gets nothing, and nothing is done for a page of somebody else.
func TestDashboardIsClosedToOthers(t *testing.T) {
	t.Parallel()
	s := newScene(t, "--control")
	at, token, _ := strings.Cut(s.link, "?")
	get := func(method, path string, header http.Header) int {
		r, err := http.NewRequest(method, at+path, strings.NewReader("server=works&csrf=x"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = header
		if host := header.Get("Host"); host != "" {
			r.Host = host
		}
		c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		answer, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	for _, tt := range []struct {
		what, method, path string
		header             http.Header
		want               int
	}{
		{"no token", "GET", "", http.Header{}, 401},
		{"no token, stream", "GET", "stream?path=/", http.Header{}, 401},
		{"a wrong token", "GET", "?token=x", http.Header{}, 401},
		{"another name", "GET", "?" + token, http.Header{"Host": {"evil.example"}}, 403},
		{"another page", "GET", "?" + token, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"a form without the cookie", "POST", "do", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, 401},
		{"the link", "GET", "?" + token, http.Header{}, 303},
	} {
		if got := get(tt.method, tt.path, tt.header); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, got, tt.want)
		}
	}
}
