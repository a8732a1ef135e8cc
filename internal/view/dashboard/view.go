package dashboard

import (
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/view/overview"
)

// place is where the view of a page is. Whoever makes it has the lock, and others wait for what he makes: a log on a disk that hangs holds
// up its own page only.
type place struct {
	mu   sync.Mutex
	view *view // nil: none was made yet
}

// view is what one page shows at a time. All browsers that look at the page share it.
type view struct {
	at       time.Time // of the state
	heading  string
	sections []section
	found    bool
	rows     map[string]row // by id
}

const (
	viewsKept = 32 // pages whose view is kept
	pagesKept = 16 // pages that were sent, and whose streams have not begun
)

// row is a row of a table as it was rendered last.
type row struct {
	part
	of  any
	day string
}

// views are the pages as they were rendered last.
type views struct {
	mu     sync.Mutex
	byPath map[string]*place
	sent   map[string]*view // what pages have that were sent whole, by their number, until their streams ask
	last   int
}

// viewOf returns a page as it is now, and the state that it shows. The path has the parameters.
func (d *Dashboard) viewOf(path string) (overview.State, *view) {
	s := d.opts.Source.State()
	at := d.views.of(path)
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.view == nil || !at.view.at.Equal(s.At) {
		m := &maker{d: d, State: s, rows: map[string]row{}}
		if at.view != nil {
			m.was = at.view.rows
		}
		p, key, query := pageAt(path)
		heading, found := p(m, key, query)
		m.was = nil // a section that is not drawn yet keeps its maker
		at.view = &view{s.At, heading, m.sections, found, m.rows}
	}
	return s, at.view
}

// of is the place of a page.
func (w *views) of(path string) *place {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.byPath[path]
	if at == nil {
		if len(w.byPath) >= viewsKept {
			clear(w.byPath)
		}
		at = &place{}
		w.byPath[path] = at
	}
	return at
}

// remember keeps what a page has, and returns the number that the page's stream asks with.
func (w *views) remember(v *view) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	delete(w.sent, strconv.Itoa(w.last-pagesKept))
	number := strconv.Itoa(w.last)
	w.sent[number] = v
	return number
}

// recall returns what the page of that number has. Once only: a stream that was lost has changed the page since.
func (w *views) recall(number string) *view {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.sent[number]
	if v == nil {
		return &view{}
	}
	delete(w.sent, number)
	return v
}

var seed = maphash.MakeSeed()

func sumOf(text string) uint64 { return maphash.String(seed, text) }
