package streamhttp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"reflect"
	"slices"
	"strings"
)

// View is a part of what there is, at a path of its own below [Path].
type View struct {
	// Name is the last element of its path.
	Name string
	// Bearer are static tokens that see this view and nothing else.
	Bearer []string
	// Subjects are globs (as path.Match, with * for a slash, too) of JWT subjects that see this view and nothing else.
	Subjects []string
}

// rights say which static tokens there are, and which view each client is bound to. They are immutable.
type rights struct {
	views    []View
	tokens   map[[sha256.Size]byte]staticToken // by the hash of each: the time that a lookup takes reveals nothing of it
	replaced chan struct{}                     // closed when others count
}

// staticToken is a configured token.
type staticToken struct {
	subject string // identifies it; the same after a restart, whatever the order of the tokens is
	view    string // all that it sees; "": everything
}

func newRights(bearer []string, views []View) *rights {
	r := &rights{views: views, tokens: map[[sha256.Size]byte]staticToken{}, replaced: make(chan struct{})}
	for _, v := range slices.Concat([]View{{Bearer: bearer}}, views) { // without a name: everything
		for _, token := range v.Bearer {
			sum := sha256.Sum256([]byte(token))
			if _, earlier := r.tokens[sum]; !earlier {
				r.tokens[sum] = staticToken{staticSubject + hex.EncodeToString(sum[:8]), v.Name}
			}
		}
	}
	return r
}

// static returns what is known of a token.
func (r *rights) static(token string) (known staticToken, ok bool) {
	known, ok = r.tokens[sha256.Sum256([]byte(token))]
	return known, ok
}

// bound returns the one view that a subject sees; "": it sees everything, and may choose any view. false: the subject
// is a token that does not count any more.
func (r *rights) bound(subject string) (view string, ok bool) {
	if strings.HasPrefix(subject, staticSubject) {
		for _, t := range r.tokens {
			if t.subject == subject {
				return t.view, true
			}
		}
		return "", false
	}
	own, isJWT := strings.CutPrefix(subject, tokenSubject)
	for _, v := range r.views {
		if isJWT && slices.ContainsFunc(v.Subjects, func(glob string) bool { return matches(glob, own) }) {
			return v.Name, true
		}
	}
	return "", true
}

// matches is path.Match, except that a slash is an ordinary character: subjects may be URLs. An invalid glob matches
// everything, so that nobody sees too much by a mistake.
func matches(glob, subject string) bool {
	const noSlash = "\x01"
	matched, err := path.Match(strings.ReplaceAll(glob, "/", noSlash), strings.ReplaceAll(subject, "/", noSlash))
	return matched || err != nil
}

// has reports whether there is a view of the name; "" is everything.
func (r *rights) has(view string) bool {
	return view == "" || slices.ContainsFunc(r.views, func(v View) bool { return v.Name == view })
}

// allows reports whether a subject may go on with a session of a view.
func (r *rights) allows(subject, view string) bool {
	bound, ok := r.bound(subject)
	return ok && (bound == view || bound == "" && r.has(view))
}

// caller is an authorized client. As JSON it is named by the front that has admitted it to the one that serves it.
type caller struct {
	Claims
	Whole    string          `json:"whole,omitempty"` // identifies who it is, also to another process with other tokens; it may be a secret
	View     string          `json:"view,omitempty"`  // all that it sees; "": everything
	Remote   string          `json:"remote"`          // the address of its connection
	Time     string          `json:"time,omitempty"`  // of the front that is to serve it, see Elsewhere; "": it is not known
	replaced <-chan struct{} // closed when its rights have to be looked up anew
	passed   bool            // another gateway has authorized it, and passes its request on
}

// peer is what the hub is told of it.
func (c caller) peer() Peer { return Peer{Subject: c.Subject, View: c.View} }

// viewAt returns the view that a path asks for: "" at [Path] itself. A slash at the end means nothing: a client takes the
// 404 that it would lead to for a lost session. false: it is no path of ours.
func viewAt(p string) (view string, ok bool) {
	if p == Path || p == Path+"/" {
		return "", true
	}
	view, below := strings.CutPrefix(strings.TrimSuffix(p, "/"), Path+"/")
	return view, below && view != ""
}

// choose returns the view of a client that asks for one. false: the request was answered.
func (f *Front) choose(w http.ResponseWriter, r *rights, subject, asked string) (view string, ok bool) {
	switch bound, _ := r.bound(subject); {
	case bound != "" && asked != "" && asked != bound:
		refuse(w, nil, refusal{status: http.StatusForbidden, text: fmt.Sprintf("your token is for the view %s only: use %s", bound, Path)})
	case bound != "":
		return bound, true
	case !r.has(asked):
		refuse(w, nil, refusal{status: http.StatusNotFound, text: fmt.Sprintf("there is no view %.64q", asked)})
	default:
		return asked, true
	}
	return "", false
}

// SetViews replaces Options.Views. Sessions whose client may not see what they show any more end, and so do the endless
// streams of clients without sessions: they come back. Whether tokens are needed at all does not change: where nobody
// needed one at the start, the views' tokens are not asked for.
func (f *Front) SetViews(views []View) {
	was := f.guard.rights.Load()
	if reflect.DeepEqual(was.views, views) {
		return
	}
	now := newRights(f.opts.Bearer, views)
	f.guard.rights.Store(now)
	close(was.replaced)
	for _, s := range f.table.all() {
		if !now.allows(s.peer.Subject, s.peer.View) {
			f.end(s)
		}
	}
}
