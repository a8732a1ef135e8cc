package dashboard

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

//go:embed assets
var assets embed.FS

// Source is what there is to show.
type Source interface {
	// State is what was seen last; asking keeps it fresh.
	State() overview.State
	// Listen returns a channel that hears of every look, until stop is called.
	Listen() (news <-chan struct{}, stop func())
	// Events are those of the last day that a filter shows, the newest first, and no more than most.
	Events(only overview.Filter, most int) []overview.Event
}

// Controls do what the buttons of a page say. An answer is one line for people.
type Controls interface {
	// Restart restarts a server.
	Restart(ctx context.Context, s overview.Server) (answer string, err error)
	// Press does what a button of an incident stands for.
	Press(ctx context.Context, incident string, b overview.Button) (answer string, err error)
}

// Options are a dashboard's settings.
type Options struct {
	Source  Source
	Control Controls // nil: the page is read-only
	// Peer says why a connection may not be used; nil: every one may.
	Peer func(local, remote net.Addr) error
	// Port is the listener's: browsers keep the cookies of all ports of a machine in one place.
	Port string
	// AgentText returns the end of the output of an agent as text, from the file that it is kept in. nil: it is not shown.
	AgentText func(path string) (string, error)
	Version   string // of outlive
	// Metrics answers at /metrics; nil: there is nothing. Prometheus needs no cookie there if Peer tells whose a connection is,
	// otherwise the token as Authorization: Bearer.
	Metrics http.Handler
}

// Dashboard is the handler.
type Dashboard struct {
	opts  Options
	door  door
	pages *template.Template
	mux   *http.ServeMux
	views views

	mu      sync.Mutex
	answers [answersKept]answer // to the last forms: each in the place of the one that is so much older
	given   int
}

// answer is what came of a form.
type answer struct {
	ID   int
	Text string
	Bad  bool
}

const answersKept = 16

// New returns a dashboard. [Dashboard.Token] belongs into the link.
func New(opts Options) *Dashboard {
	d := &Dashboard{opts: opts, door: newDoor(opts.Port), mux: http.NewServeMux(), views: views{byPath: map[string]*place{}, sent: map[string]*view{}}}
	d.pages = template.Must(template.New("").Funcs(functions).ParseFS(assets, "assets/*.html"))
	for _, pattern := range []string{"GET /{$}", "GET /server/{key...}", "GET /agent/{key...}", "GET /incidents", "GET /events"} {
		d.mux.HandleFunc(pattern, d.show)
	}
	if opts.Metrics != nil {
		d.mux.Handle("GET /metrics", opts.Metrics)
	}
	d.mux.HandleFunc("GET /stream", d.stream)
	d.mux.HandleFunc("POST /do", d.do)
	for name, kind := range map[string]string{"app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8"} {
		d.mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, _ *http.Request) {
			text, _ := assets.ReadFile("assets/" + name) // it is embedded
			w.Header().Set("Content-Type", kind)
			_, _ = w.Write(text)
		})
	}
	return d
}

// Token is what a browser has to show once, as the parameter token of any page.
func (d *Dashboard) Token() string { return d.door.token }

// ServeHTTP implements http.Handler.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with none, a form has no Origin either
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if !d.admit(w, r) {
		return
	}
	d.mux.ServeHTTP(w, r)
}

// frame is what every page has around it.
type frame struct {
	Title    string
	Heading  string
	Path     string // where it is, with its parameters
	Page     string // the same without
	Number   string // of what it has, for its stream
	At       time.Time
	Wrong    int
	Waiting  int
	Control  bool
	CSRF     string
	Answer   *answer
	Version  string
	Sections []section
}

// show answers with a whole page.
func (d *Dashboard) show(w http.ResponseWriter, r *http.Request) {
	at := url.URL{Path: r.URL.Path}
	query := r.URL.Query()
	query.Del(answerParameter)
	at.RawQuery = query.Encode()
	path := at.RequestURI()
	s, v := d.viewOf(path)
	f := frame{
		Title: title(s, v.heading), Heading: v.heading, Path: path, Page: r.URL.Path, Number: d.views.remember(v), At: s.At, Wrong: s.Wrong, Waiting: s.Waiting,
		Control: d.opts.Control != nil, Version: d.opts.Version, Answer: d.answerTo(r), Sections: v.sections,
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if !v.found {
		w.WriteHeader(http.StatusNotFound)
	}
	var page bytes.Buffer
	if err := d.pages.ExecuteTemplate(&page, "frame", f); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(page.Bytes()) // the browser may have gone
}

// title counts what is wrong, where a tab is all that is seen.
func title(s overview.State, heading string) string {
	if n := s.Wrong + s.Waiting; n > 0 {
		heading = fmt.Sprintf("(%d!) %s", n, heading)
	}
	return heading + " · outlive"
}
