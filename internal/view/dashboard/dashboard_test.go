package dashboard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/html"

	"github.com/outlive-mcp/outlive/internal/gateway/gateway"
	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.Local)

// fixed is a source that a test changes.
type fixed struct {
	mu     sync.Mutex
	state  overview.State
	events []overview.Event
	news   chan struct{}
}

func (f *fixed) State() overview.State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

func (f *fixed) Listen() (<-chan struct{}, func()) { return f.news, func() {} }
func (f *fixed) Events(only overview.Filter, most int) []overview.Event {
	return overview.Newest(f.events, only, most, f.State().At)
}

func (f *fixed) change(how func(s *overview.State)) {
	f.mu.Lock()
	how(&f.state)
	f.state.At = f.state.At.Add(time.Millisecond) // another look
	f.mu.Unlock()
	f.news <- struct{}{}
}

// pressed are the buttons that were pressed.
type pressed []string

func (p *pressed) Restart(_ context.Context, s overview.Server) (string, error) {
	*p = append(*p, "restart "+s.Key)
	return "it was restarted", nil
}

func (p *pressed) Press(_ context.Context, id string, b overview.Button) (string, error) {
	*p = append(*p, b.Verb+" "+id+" "+b.Target)
	return "", errors.New("<no>")
}

func example() overview.State {
	strip := []overview.Span{{From: noon.Add(-overview.Day), To: noon.Add(-time.Hour), Health: overview.Good}, {From: noon.Add(-time.Hour), To: noon, Health: overview.Bad, Restarts: 2}}
	return overview.State{At: noon, Wrong: 1, Waiting: 1, Monitor: 1,
		Servers: []overview.Server{
			{Key: "sick@7", Name: "sick", Health: overview.Bad, State: "failed", Why: `no key <script>alert(1)</script>`, Since: noon.Add(-time.Hour), Strip: strip,
				Renewals: []overview.Renewal{{At: noon.Add(-time.Hour), Cause: "crash", Source: "none", Reason: "exit 3"}, {At: noon.Add(-2 * time.Hour), Cause: "requested", Source: "tool", Done: true, Took: 80 * time.Millisecond}},
				Calls:    []backend.Calls{{Method: "tools/call", Tool: "sum", OK: 3, Unknown: 1}}},
			{Key: "g@8/well", Name: "well", Health: overview.Good, State: "ready", Strip: strip[:1]},
		},
		Agents: []overview.Agent{{Key: "a/b", Name: "a/b", Health: overview.Bad, State: "waits", Why: "asks", Acts: []overview.Act{{At: noon.Add(-time.Hour), Text: "restarted"}, {At: noon, Text: "told it to go on"}}, Evidence: []string{"process: PID 7"}, Strip: strip, History: []overview.Standing{
			{From: noon.Add(-9 * time.Hour), To: noon.Add(-time.Hour), Health: overview.Good, State: "works", Watched: true},
			{From: noon.Add(-time.Hour), To: noon, Health: overview.Bad, State: "waits for an answer", Why: "deploy?", Watched: true}}}},
		Incidents: []overview.Incident{{ID: "I1", Agent: "a/b", Title: "a/b waits", State: "notified", Opened: noon, Buttons: []overview.Button{{Verb: "allow", Label: "Allow: rm -r x", Target: "R1"}}}},
	}
}

// ready is what has happened in the example.
var ready = []overview.Event{{At: noon, Level: "INFO", Type: "server_ready", Message: "Server ready", Instance: "sick@7"}}

// open serves a dashboard and returns a browser that is in, and the address.
func open(t *testing.T, o Options) (*http.Client, string, *Dashboard) {
	t.Helper()
	d := New(o)
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	jar := &oneJar{}
	c := &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	if code, _ := get(t, c, s.URL+"/?token="+d.Token()); code != 200 {
		t.Fatalf("the link leads to %d", code)
	}
	return c, s.URL, d
}

// oneJar keeps the cookies of one host.
type oneJar struct{ cookies []*http.Cookie }

func (j *oneJar) SetCookies(_ *url.URL, c []*http.Cookie) { j.cookies = append(j.cookies, c...) }
func (j *oneJar) Cookies(*url.URL) []*http.Cookie         { return j.cookies }

func get(t *testing.T, c *http.Client, at string) (int, string) {
	t.Helper()
	resp, err := c.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// parsed is a page's text as a person reads it, its ids and its links.
func parsed(t *testing.T, page string) (text string, ids map[string]int, links []string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	ids = map[string]int{}
	for n := range root.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data + " ")
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				ids[a.Val]++
			case "href", "src":
				links = append(links, a.Val)
			}
		}
	}
	return strings.Join(strings.Fields(b.String()), " "), ids, links
}

func TestPagesSayWhatIsSo(t *testing.T) {
	c, at, _ := open(t, Options{Source: &fixed{state: example(), events: ready}})
	for path, want := range map[string][]string{
		"/": {"(2!) Overview", "✖ sick : keeps failing", "alert(1)", "since 11:00:00", "outlive: has restarted it once since then, last at 11:00:00 (2 × in the last 24 h), and does not start it again by itself",
			"Needs attention 1 of 2 servers, 1 of 1 agent: ✖ sick , ✖ a/b", "To do: fix what it names above, then restart it: outlive restart sick@7", "a/b waits", "● ready", "read-only", "as of Mon 4 May, 12:00:00",
			"last 24 h 3 May 12:00 00:00 now", "✖ broken, or waits for a person. A strip is the last 24 hours"},
		"/server/sick@7":                         {"crash", "nobody", "exit 3", "80 ms", "tool", "sum", "4", "1 × outcome unknown", "11:00 to now: broken, restarted 2 ×", "Sun 18:00 Mon 00:00 06:00 now"},
		"/server/g@8/well":                       {"● ready", "Restarts in the last 1h: 0", "None in that time", "None yet", "noted once a minute"},
		"/agent/a/b":                             {"✖ waits", "told it to go on not seen 11:00:00 restarted not seen", "process: PID 7", "11:00:00 now 60 min ✖ waits for an answer left to a person deploy?", "03:00:00 11:00:00 8 h 0 min ● works"},
		"/incidents":                             {"a/b waits", "notified", "Wrong, and no incident", "✖ sick : keeps failing"},
		"/events":                                {"The last 1 events", "Server ready", "sick@7"},
		"/events?about=sick%407":                 {"The last 1 of these events", "Server ready"},
		"/events?about=sick+g&text=server+READY": {"The last 1 of these events", "Server ready"},
		"/events?about=g@8/well":                 {"Nothing of that kind is known of the last 24 hours"},
		"/events?level=WARNING":                  {"Nothing of that kind is known of the last 24 hours"},
		"/events?about=%22%3E%3Cscript%3E":       {"Nothing of that kind is known of the last 24 hours"},
	} {
		code, page := get(t, c, at+path)
		text, ids, links := parsed(t, page)
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s does not say %q:\n%s", path, w, text)
			}
		}
		if code != 200 || strings.Contains(page, "<script>alert") || strings.Contains(page, "<button") {
			t.Errorf("%s: %d, with somebody's script or with buttons:\n%s", path, code, page)
		}
		for id, n := range ids {
			if n > 1 {
				t.Errorf("%s: %d elements have the id %s", path, n, id)
			}
		}
		for _, link := range links {
			if !strings.HasPrefix(link, "/") && !strings.HasPrefix(link, "#") && !strings.HasPrefix(link, "data:image/svg+xml,") {
				t.Errorf("%s asks %s", path, link)
			}
		}
	}
	if code, page := get(t, c, at+"/server/none@1"); code != 404 || !strings.Contains(page, "not there any more") {
		t.Errorf("a server that has gone: %d\n%s", code, page)
	}
}

// The tab has its sign from the first moment on, and without JavaScript: a square where something is wrong, a circle where nothing is.
func TestTheSignOfTheTab(t *testing.T) {
	square, circle, ring := "d='M1 1h14v14H1z'", "r='7'", "r='6'"
	for want, s := range map[string]overview.State{square: example(), circle: {At: noon}} {
		c, at, _ := open(t, Options{Source: &fixed{state: s}})
		_, page := get(t, c, at+"/")
		icon, _, _ := strings.Cut(page[strings.Index(page, `<link rel="icon" href="`):], ">")
		shown, others, _ := strings.Cut(icon, ` data-good="`)
		if !strings.HasPrefix(shown, `<link rel="icon" href="data:image/svg+xml,%3Csvg `) || !strings.Contains(shown, want) {
			t.Errorf("the sign is no %s: %s", want, icon)
		}
		for _, shape := range []string{circle, square, ring} { // for the script
			if strings.Count(others, shape) != 1 {
				t.Errorf("the script has no %s, or several: %s", shape, others)
			}
		}
		stranger := &http.Client{Transport: &http.Transport{}}
		t.Cleanup(stranger.CloseIdleConnections)
		if code, page := get(t, stranger, at+"/"); code != 401 || !strings.Contains(page, ring) {
			t.Errorf("a page that is closed: %d\n%s", code, page)
		}
	}
}

// Of what does not answer the page says that, and shows what it has written last.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "mute.log")
	if err := os.WriteFile(log, []byte("waiting for a lock\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	mute := overview.Server{Key: "mute@3", Name: "mute", State: control.NoAnswer, Health: overview.Bad, Why: "outlive runs, and does not answer", LogPath: log}
	never := mute // it has answered nobody who looks
	never.Key, never.LogPath = "never@4", ""
	c, at, _ := open(t, Options{Source: &fixed{state: overview.State{At: noon, Servers: []overview.Server{mute, never}}}})
	_, page := get(t, c, at+"/server/mute@3")
	text, ids, _ := parsed(t, page)
	for _, wrong := range []string{"None yet", "None in that time", "noted once a minute"} {
		if strings.Contains(text, wrong) {
			t.Errorf("the page says %q:\n%s", wrong, text)
		}
	}
	if !strings.Contains(text, "✖ no answer") || !strings.Contains(text, "waiting for a lock") || ids["curves"] != 1 || ids["details"] != 1 {
		t.Errorf("%v\n%s", ids, text)
	}
	if _, page := get(t, c, at+"/server/never@4"); strings.Contains(page, "Nothing is kept of it") {
		t.Errorf("where its log is was never said, and the page says that there is none:\n%s", page)
	}
}

// Who looks for words on the page of a server finds them in its events and in its stderr, also in what was just rotated away.
func TestSearchOfAServer(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "sick.7.stderr.log")
	for name, text := range map[string]string{"sick.7.stderr-2026-05-04T10-00-00.000-size.log": "before: Lock <held>\n", "sick.7.stderr.log": "one\nwaiting for a LOCK\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := example()
	s.Servers[0].LogPath, s.Servers[0].Instance = log, control.Instance{Name: "sick", PID: 7}
	c, at, _ := open(t, Options{Source: &fixed{state: s, events: ready}})
	if _, page := get(t, c, at+"/server/sick@7"); !strings.Contains(page, `action="/events" role="search"`) || !strings.Contains(page, `name="about" value="sick@7"`) {
		t.Errorf("the page of the server has no search:\n%s", page)
	}
	for query, want := range map[string]string{
		"about=sick%407&text=lock": "Lines of stderr with these words sick before: Lock <held> waiting for a LOCK In the last MiB of " + log + " ; to search in all of it: outlive logs sick@7",
		"about=sick&text=nothing":  "sick None. In the last MiB of",
		"about=sick":               "",
		"text=lock":                "",
	} {
		_, page := get(t, c, at+"/events?"+query)
		text, _, _ := parsed(t, page)
		if !strings.Contains(text, want) || strings.Contains(text, "Lines of stderr") != (want != "") {
			t.Errorf("%s does not say %q:\n%s", query, want, text)
		}
	}
}

// A text that cannot be read just now, such as one on a disk that hangs, holds up no other page.
func TestATextThatHangs(t *testing.T) {
	s := example()
	s.Agents[0].Output = "output.log"
	reading, release := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(release) })
	defer end()
	c, at, d := open(t, Options{Source: &fixed{state: s}, AgentText: func(string) (string, error) {
		close(reading)
		<-release
		return "late", nil
	}})
	late := time.AfterFunc(time.Minute, func() {
		t.Error("the overview waits for the text of an agent")
		end()
	})
	defer late.Stop()
	made := make(chan *view)
	go func() {
		_, v := d.viewOf("/agent/a/b")
		made <- v
	}()
	<-reading
	if code, page := get(t, c, at+"/"); code != 200 || !strings.Contains(page, "a/b waits") {
		t.Errorf("the overview meanwhile: %d\n%s", code, page)
	}
	end()
	if v := <-made; !v.found {
		t.Error("the page of the agent is not there")
	}
}

// Agents that fail for one cause are one incident: it stands there once, and on the page of each.
func TestIncidentOfSeveralAgents(t *testing.T) {
	s := overview.State{At: noon, Incidents: []overview.Incident{{ID: "I1", Members: []string{"a", "b"}, Title: "2 agents have no credit", State: "notified", Opened: noon}}}
	for _, key := range []string{"a", "b", "c"} {
		s.Agents = append(s.Agents, overview.Agent{Key: key, Name: key, Health: overview.Bad, State: "is stuck"})
	}
	c, at, _ := open(t, Options{Source: &fixed{state: s}})
	for path, want := range map[string]struct{ incidents, cards int }{"/": {1, 2}, "/agent/a": {1, 1}, "/agent/b": {1, 1}, "/agent/c": {0, 0}} {
		_, page := get(t, c, at+path)
		if n := strings.Count(page, "2 agents have no credit</h3>"); n != want.incidents {
			t.Errorf("%s has the incident %d times:\n%s", path, n, page)
		}
		if n := strings.Count(page, `class="card `); n != want.cards {
			t.Errorf("%s has %d cards, want %d:\n%s", path, n, want.cards, page)
		}
	}
}

// Fifty servers are well, one crashes every half a minute, and one elsewhere is away all day. The overview names these two before anything else,
// and the events of a server that is well are not lost among theirs.
func TestADayWithTwoOfFiftyTwoThatAreWrong(t *testing.T) {
	in, started := overview.Input{At: noon}, noon.Add(-overview.Day)
	tell := func(pid int, server string, at time.Time, level string, kind event.Type, message string) {
		e := overview.Event{At: at, Level: level, Type: kind, Message: message, PID: pid, Server: server, Instance: fmt.Sprintf("s%d@%d", pid, pid), Reason: "exit 137"}
		if server != "" {
			e.Instance = "gw@52"
		}
		in.Events = append(in.Events, e)
	}
	for pid := 1; pid <= 51; pid++ {
		name := fmt.Sprint("s", pid)
		in.Instances = append(in.Instances, overview.Instance{Instance: control.Instance{Name: name, PID: pid}, Status: control.Status{
			Status: backend.Status{Name: name, Command: []string{name}, State: "ready"}, PID: pid, StartedAt: started}})
		tell(pid, "", started.Add(time.Minute), "INFO", event.ServerReady, "Server ready")
	}
	in.Instances = append(in.Instances, overview.Instance{Instance: control.Instance{Name: "gw", PID: 52}, Status: control.Status{Config: "outlive.yaml", PID: 52, StartedAt: started, Servers: []control.Member{
		{ServerStatus: gateway.ServerStatus{Name: "linear", Standing: "unusable", Trouble: "linear: cannot be reached: connection refused"}}}}})
	for at := started.Add(2 * time.Minute); at.Before(noon); at = at.Add(30 * time.Second) {
		tell(51, "", at, "WARNING", event.ServerCrashed, "Server crashed (exit status 137)")
		tell(51, "", at, "INFO", event.RestartInitiated, "Restart initiated: exit 137")
		tell(51, "", at, "INFO", event.ServerReady, "Server ready")
		tell(52, "linear", at, "WARNING", event.ConnectionLost, "Connection lost")
	}
	c, at, _ := open(t, Options{Source: &fixed{state: overview.Of(in), events: in.Events}})
	_, page := get(t, c, at+"/")
	text, _, _ := parsed(t, page)
	for _, want := range []string{
		"(2!) Overview", "Needs attention 2 of 52 servers: ✖ linear , ▲ s51 ✖ linear : cannot be used", "▲ s51 : ready has stopped working 30 × in the last 15 minutes: exit 137", "To do: see why it stops: outlive logs s51@51",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the overview does not say %q:\n%.2000s", want, text)
		}
	}
	for path, want := range map[string]string{"/events?about=s7@7": "Server ready", "/events?about=s51": "Server crashed", "/events?about=gw/linear": "Connection lost", "/events?about=gw@52/linear": "Connection lost"} {
		if _, page := get(t, c, at+path); !strings.Contains(page, want) || want == "Server ready" && strings.Contains(page, "crashed") {
			t.Errorf("%s does not say %q alone:\n%.2000s", path, want, page)
		}
	}
}

// However much is wrong, the overview stays short: what has no card is counted.
func TestAnOverviewOfMuchThatIsWrong(t *testing.T) {
	s := overview.State{At: noon}
	for n := range 60 {
		s.Servers = append(s.Servers, overview.Server{Key: fmt.Sprintf("s%d@%d", n, n), Name: fmt.Sprint("s", n), Health: overview.Bad, State: "failed"})
	}
	c, at, _ := open(t, Options{Source: &fixed{state: s}})
	_, page := get(t, c, at+"/")
	text, _, _ := parsed(t, page)
	if !strings.Contains(text, "60 of 60 servers: ✖ s0 , ✖ s1") || !strings.Contains(text, "✖ s19 , and 40 more") || !strings.Contains(text, "52 more have no card here") || strings.Count(page, `class="card `) != cardsShown {
		t.Errorf("%d cards:\n%.3000s", strings.Count(page, `class="card `), text)
	}
	if _, page := get(t, c, at+"/incidents"); strings.Count(page, `class="card `) != 60 {
		t.Errorf("not all of them are with the incidents: %d", strings.Count(page, `class="card `))
	}
}

// An event that is repeated changes its row: the table, which somebody may be reading, stays.
func TestARepeatedEventChangesItsRow(t *testing.T) {
	f := &fixed{state: example()}
	lost := func(times int) (list []overview.Event) {
		for n := range times {
			list = append(list, overview.Event{At: noon.Add(-time.Duration(n) * time.Minute), Level: "WARNING", Type: "connection_lost", Instance: "far@9", Reason: "refused",
				Message: fmt.Sprintf("Connection lost: refused; next try in %ds", times-n)})
		}
		return list
	}
	f.events = lost(2)
	c, at, d := open(t, Options{Source: f})
	_, was := d.viewOf("/events")
	f.events = lost(3)
	for n := range f.events { // one more has come
		f.events[n].At = f.events[n].At.Add(time.Minute)
	}
	f.state.At = f.state.At.Add(time.Minute)
	_, is := d.viewOf("/events")
	list := news(was.sections, is.sections)
	if len(list) != 1 || !strings.Contains(string(list[0].HTML), "3 × since 11:59:00") {
		t.Fatalf("the page gets %v", list)
	}
	if _, page := get(t, c, at+"/events"); !strings.Contains(page, `id="`+list[0].ID+`"`) {
		t.Errorf("the page has no row %s:\n%s", list[0].ID, page)
	}
}

// What outlive has done again and again is said once, with how often.
func TestWhatWasDoneAgainAndAgain(t *testing.T) {
	agent := overview.Agent{Key: "a", Acts: []overview.Act{{At: noon.Add(-3 * time.Hour), Text: "restarted"}, {At: noon.Add(-20 * time.Minute), Text: "restarted"}, {At: noon.Add(-15 * time.Minute), Text: "told to go on"},
		{At: noon.Add(-10 * time.Minute), Text: "restarted"}}}
	got := doneAbout(overview.Incident{Agent: "a", Opened: noon.Add(-5 * time.Minute)}, []overview.Agent{agent}, noon)
	if want := "restarted: 2 ×, last at 11:50:00; told to go on at 11:45:00"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHowLongItGoesOn(t *testing.T) {
	at := noon.Add(90*time.Second + 300*time.Millisecond)
	for _, tt := range []struct {
		from, to time.Time
		want     string
	}{
		{noon, at, "60 s"}, // to the minute: a page is not to change all the time
		{at.Add(-time.Second), at, "less than 1 min"},
		{at, at, "less than 1 min"},
		{noon.Add(-time.Second), noon, "1.0 s"},
	} {
		if got := spanOf(tt.from, tt.to, at); got != tt.want {
			t.Errorf("from %s to %s: %s, want %s", tt.from, tt.to, got, tt.want)
		}
	}
}

func TestButtons(t *testing.T) {
	var p pressed
	c, at, d := open(t, Options{Source: &fixed{state: example()}, Control: &p})
	post := func(v url.Values) (int, string) {
		resp, err := c.PostForm(at+"/do", v)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(text)
	}
	form := d.door.form
	if code, _ := post(url.Values{"server": {"sick@7"}}); code != 403 || p != nil {
		t.Errorf("a form without its token: %d, %v", code, p)
	}
	if code, text := post(url.Values{"csrf": {form}, "server": {"sick@7"}, "back": {"//evil.example/x"}}); code != 404 && !strings.Contains(text, "it was restarted") {
		t.Errorf("restart: %d\n%s", code, text)
	}
	if _, text := post(url.Values{"csrf": {form}, "incident": {"I1"}, "verb": {"allow"}, "target": {"R1"}, "back": {"/incidents"}}); !strings.Contains(text, "Not done: &lt;no&gt;") {
		t.Errorf("a button that fails:\n%s", text)
	}
	// What is asked has changed since the page was made.
	post(url.Values{"csrf": {form}, "incident": {"I1"}, "verb": {"allow"}, "target": {"R0"}, "back": {"/"}})
	post(url.Values{"csrf": {form}, "incident": {"I1"}, "verb": {"stop"}, "back": {"/"}})
	if got := fmt.Sprint(p); got != "[restart sick@7 allow I1 R1]" {
		t.Errorf("done: %s", got)
	}
}

func TestOnlyTheUserComesIn(t *testing.T) {
	f := &fixed{state: example()}
	_, at, d := open(t, Options{Source: f, Port: "1"})
	_, closedAt, d2 := func() (*http.Client, string, *Dashboard) {
		d := New(Options{Source: f, Peer: func(net.Addr, net.Addr) error { return errors.New("user 7") }})
		s := httptest.NewServer(d)
		t.Cleanup(s.Close)
		return nil, s.URL, d
	}()
	c := &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(c.CloseIdleConnections)
	for _, tt := range []struct {
		what, at, host, origin string
		want                   int
	}{
		{"without the token", at + "/", "", "", 401},
		{"with another", at + "/?token=x", "", "", 401},
		{"a stream", at + "/stream?path=/", "", "", 401},
		{"the style, too", at + "/app.css", "", "", 401},
		{"the link", at + "/?token=" + d.Token(), "", "", 303},
		{"by another name", at + "/?token=" + d.Token(), "evil.example", "", 403},
		{"for another page", at + "/?token=" + d.Token(), "", "http://evil.example", 403},
		{"another user", closedAt + "/?token=" + d2.Token(), "", "", 403},
	} {
		r, err := http.NewRequest(http.MethodGet, tt.at, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tt.host != "" {
			r.Host = tt.host
		}
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %d, want %d", tt.what, resp.StatusCode, tt.want)
		}
	}
}

func TestStreamSendsWhatChanges(t *testing.T) {
	f := &fixed{state: example(), news: make(chan struct{})}
	f.state.At = noon.Add(time.Minute) // at the turn of a quarter of an hour all strips move on
	c, at, _ := open(t, Options{Source: f})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // what does not come fails here, by name
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/stream?path=/", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	next := func(kind string) string {
		for lines.Scan() {
			if lines.Text() == "event: "+kind && lines.Scan() {
				return lines.Text()
			}
		}
		t.Fatalf("no %s came: %v", kind, lines.Err())
		return ""
	}
	if first := next("parts"); !strings.Contains(first, `"id":"attention"`) || !strings.Contains(first, `"id":"servers"`) {
		t.Errorf("first: %s", first)
	}
	if tick := next("tick"); !strings.Contains(tick, `"title":"(2!) Overview`) {
		t.Errorf("tick: %s", tick)
	}
	f.change(func(s *overview.State) {
		s.Servers = append([]overview.Server(nil), s.Servers...)
		s.Servers[1].Strip = []overview.Span{{From: noon.Add(-overview.Day), To: noon, Health: overview.Good, Restarts: 41}}
	})
	row := next("parts")
	if !strings.Contains(row, `"id":"`+idOf("server-row", "g@8/well")) || !strings.Contains(row, "41") || strings.Contains(row, `"id":"servers"`) || strings.Contains(row, "sick") {
		t.Errorf("one server has changed, and sent is %s", row)
	}
	f.change(func(s *overview.State) { s.Servers = s.Servers[1:] })
	if whole := next("parts"); !strings.Contains(whole, `"id":"servers"`) {
		t.Errorf("a server has gone, and sent is %s", whole)
	}
}

// A row that has changed is replaced by itself, and the section where other rows stand in it.
func TestNewsOfRows(t *testing.T) {
	page := func(shape uint64, rows ...part) []section {
		return []section{{ID: "head", shape: 1}, {ID: "events", Rows: rows, shape: shape, whole: func() template.HTML { return "all" }}}
	}
	is := page(1, part{ID: "a", sum: 1}, part{ID: "b", sum: 2})
	for _, tt := range []struct {
		was  []section
		want string
	}{
		{is, "[]"},
		{page(1, part{ID: "a", sum: 1}, part{ID: "b", sum: 1}), "[{b  2}]"},
		{page(2, part{ID: "b", sum: 2}), "[{events all 0}]"},
		{page(2, part{ID: "a", sum: 1}, part{ID: "b", sum: 2}, part{ID: "c", sum: 3}), "[{events all 0}]"},
	} {
		if got := fmt.Sprint(news(tt.was, is)); got != tt.want {
			t.Errorf("of %v come %s, want %s", tt.was[1].Rows, got, tt.want)
		}
	}
}

// A page gets what has changed since it was made, and nothing again: what is replaced under a pointer loses its click.
func TestAFreshPageGetsNothingTwice(t *testing.T) {
	f := &fixed{state: example(), news: make(chan struct{})}
	c, at, _ := open(t, Options{Source: f})
	_, page := get(t, c, at+"/")
	_, number, _ := strings.Cut(page, `data-page="`)
	number, _, _ = strings.Cut(number, `"`)
	first := func() string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/stream?page="+number+"&path=/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		line, err := bufio.NewReader(resp.Body).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	if got := first(); got != "event: tick\n" {
		t.Errorf("the page as it is, and first comes %q", got)
	}
	if got := first(); got != "event: parts\n" { // a stream that was lost: it may have changed the page
		t.Errorf("after the stream was lost first comes %q", got)
	}
}
