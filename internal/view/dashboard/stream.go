package dashboard

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"net/http"
	"net/url"
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
	shape uint64 // sum of what makes the section another one beside its rows
}

// HTML is the whole section; with rows it is long, and made when somebody needs it.
func (s section) HTML() template.HTML { return s.whole() }

// sent is what a page has: the sum of each element, by id.
type sent map[string]uint64

func (s sent) changed(id string, sum uint64) bool {
	if was, known := s[id]; known && was == sum {
		return false
	}
	s[id] = sum
	return true
}

// all notes that a page has these sections.
func (s sent) all(sections []section) {
	for _, one := range sections {
		s.changed(one.ID+"#shape", one.shape)
		for _, row := range one.Rows {
			s.changed(row.ID, row.sum)
		}
	}
}

// news are the parts of sections that a page does not have as they are now.
func (s sent) news(sections []section) (list []part) {
	for _, one := range sections {
		whole := s.changed(one.ID+"#shape", one.shape)
		if whole {
			list = append(list, part{ID: one.ID, HTML: one.whole()})
		}
		for _, row := range one.Rows {
			if s.changed(row.ID, row.sum) && !whole {
				list = append(list, row)
			}
		}
	}
	s.forget(sections)
	return list
}

// forget drops what no section has any more, once that is most of it. A page of events is open for days.
func (s sent) forget(sections []section) {
	n := 0
	for _, one := range sections {
		n += 1 + len(one.Rows)
	}
	if len(s) <= 2*n {
		return
	}
	has := make(map[string]bool, n)
	for _, one := range sections {
		has[one.ID+"#shape"] = true
		for _, row := range one.Rows {
			has[row.ID] = true
		}
	}
	maps.DeleteFunc(s, func(id string, _ uint64) bool { return !has[id] })
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
	news, stop := d.opts.Source.Listen()
	defer stop()
	every := time.NewTicker(tickEvery)
	defer every.Stop()
	has := d.views.recall(r.URL.Query().Get("page"))
	var was *view
	for {
		s, v := d.viewOf(path)
		if v != was {
			if list := has.news(v.sections); len(list) > 0 && !write("parts", list) {
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
		case <-news:
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
