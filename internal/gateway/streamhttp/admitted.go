package streamhttp

import (
	"encoding/json"
	"net/http"
)

// admitted serves requests that another front has admitted and forwarded.
func (f *Front) admitted(w http.ResponseWriter, r *http.Request) {
	welcome(w, r)
	switch extra := f.opts.Extra[r.URL.Path]; {
	case r.URL.Path == f.opts.Path:
		f.serveNamed(w, r)
	case extra != nil:
		extra.ServeHTTP(w, r)
	case f.opts.Endless[r.URL.Path] != nil:
		f.endless.Add(1)
		defer f.endless.Add(-1)
		f.opts.Endless[r.URL.Path](w, r, f.drain.done())
	default:
		http.NotFound(w, r)
	}
}

// serveNamed serves a client that the request names.
func (f *Front) serveNamed(w http.ResponseWriter, r *http.Request) {
	var who caller
	if fields := r.Header[headerCaller]; len(fields) != 1 || json.Unmarshal([]byte(fields[0]), &who) != nil {
		refuse(w, http.StatusForbidden, nil, refusal{code: codeInvalidRequest, text: "Forbidden: the request names no caller"})
		return
	}
	rights := f.guard.rights.Load()
	// The other front may have read another configuration than this one.
	view, ok := f.choose(w, rights, who.Subject, who.View)
	if !ok {
		return
	}
	r.RemoteAddr = who.Remote
	who.View, who.replaced = view, rights.replaced
	f.dispatch(w, r, who)
}
