package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// answerParameter says which answer to a form a page shows.
const answerParameter = "answer"

// do carries out a form, and leads back to its page.
func (d *Dashboard) do(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	switch {
	case d.opts.Control == nil:
		http.Error(w, "this dashboard is read-only; start it with --control", http.StatusForbidden)
		return
	case !same(r.PostFormValue("csrf"), d.door.form):
		http.Error(w, "the form is not of this page: load the page again", http.StatusForbidden)
		return
	}
	text, err := d.carryOut(r)
	bad := err != nil
	if bad {
		text = err.Error()
	}
	back, _, _ := strings.Cut(onThisHost(r.PostFormValue("back")), "?")
	http.Redirect(w, r, back+"?"+answerParameter+"="+strconv.Itoa(d.keep(text, bad)), http.StatusSeeOther)
}

func (d *Dashboard) carryOut(r *http.Request) (string, error) {
	s := d.opts.Source.State()
	if key := r.PostFormValue("server"); key != "" {
		at := slices.IndexFunc(s.Servers, func(one overview.Server) bool { return one.Key == key && !one.Gateway })
		if at < 0 {
			return "", fmt.Errorf("%s is not there any more", key)
		}
		return d.opts.Control.Restart(r.Context(), s.Servers[at])
	}
	id := r.PostFormValue("incident")
	for _, i := range s.Incidents {
		if i.ID != id {
			continue
		}
		for _, b := range i.Buttons {
			if b.Verb == r.PostFormValue("verb") && b.Target == r.PostFormValue("target") {
				return d.opts.Control.Press(r.Context(), id, b)
			}
		}
	}
	return "", errors.New("this button is not there any more")
}

// keep remembers an answer for the page that shows it.
func (d *Dashboard) keep(text string, bad bool) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given++
	d.answers[d.given%answersKept] = answer{d.given, text, bad}
	return d.given
}

func (d *Dashboard) answerTo(r *http.Request) *answer {
	id, err := strconv.Atoi(r.URL.Query().Get(answerParameter))
	if err != nil || id < 1 {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a := d.answers[id%answersKept]; a.ID == id {
		return &a
	}
	return nil
}
