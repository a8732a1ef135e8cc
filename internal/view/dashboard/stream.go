package dashboard

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	tickEvery  = time.Second
	tickWithin = 10 * time.Second // how long one write may take
)

// part is an element of a page that is replaced as a whole.
type part struct {
	ID   string        `json:"id"`
	HTML template.HTML `json:"html"`
	sum  uint64
}

// section is a part that may have rows, each of which can be replaced by itself as long as there are the same ones.
type section struct {
	ID    string
	whole func() template.HTML
	Rows  []part
	shape uint64 // sum of what makes the section another one: all but what its rows show
}

// HTML is the whole section; with rows it is long, and made when somebody needs it.
func (s section) HTML() template.HTML { return s.whole() }

// news are the parts of a page that are others than they were: sections, and rows of those that are the same.
func news(was, is []section) (list []part) {
	for _, one := range is {
		at := slices.IndexFunc(was, func(o section) bool { return o.ID == one.ID })
		if at < 0 || was[at].shape != one.shape {
			list = append(list, part{ID: one.ID, HTML: one.whole()})
			continue
		}
		for n, row := range one.Rows { // the same ones, in the same order
			if row.sum != was[at].Rows[n].sum {
				list = append(list, row)
			}
		}
	}
	return list
}

// tick says how old what the page shows is.
type tick struct {
	Age   int64  `json:"age"` // milliseconds
	Title string `json:"title"`
}

// stream sends the parts of one page that change.
func (d *Dashboard) stream(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Query().Get("path")
	if p, _, _ := pageAt(path); p == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	write := func(kind string, v any) bool {
		fmt.Fprintf(w, "event: %s\ndata: ", kind) // errors stay, and show below
		_ = out.SetWriteDeadline(time.Now().Add(tickWithin))
		to := json.NewEncoder(w)
		to.SetEscapeHTML(false) // it is not inside a page; the encoder ends it with a line break
		err := to.Encode(v)
		if err == nil {
			_, err = io.WriteString(w, "\n")
		}
		return err == nil
	}
	looks, stop := d.opts.Source.Listen()
	defer stop()
	every := time.NewTicker(tickEvery)
	defer every.Stop()
	was := d.views.recall(r.URL.Query().Get("page"))
	for {
		s, v := d.viewOf(path)
		if v != was {
			if list := news(was.sections, v.sections); len(list) > 0 && !write("parts", list) {
				return
			}
		}
		was = v
		if !write("tick", tick{time.Since(s.At).Milliseconds(), title(s, v.heading)}) || out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-looks:
		case <-every.C:
		}
	}
}

// pageAt is the page of a path, what it is of, and how it is shown.
func pageAt(path string) (p page, key string, query url.Values) {
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, "", nil
	}
	query = u.Query()
	switch u.Path {
	case "/":
		return overviewPage, "", query
	case "/incidents":
		return incidentsPage, "", query
	case "/events":
		return eventsPage, "", query
	}
	if key, ok := strings.CutPrefix(u.Path, "/server/"); ok {
		return serverPage, key, query
	}
	if key, ok := strings.CutPrefix(u.Path, "/agent/"); ok {
		return agentPage, key, query
	}
	return nil, "", nil
}
