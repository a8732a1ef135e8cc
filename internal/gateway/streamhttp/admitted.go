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
	var name named
	if fields := r.Header[headerCaller]; len(fields) != 1 || json.Unmarshal([]byte(fields[0]), &name) != nil {
		refuse(w, http.StatusForbidden, nil, refusal{code: codeInvalidRequest, text: "Forbidden: the request names no caller"})
		return
	}
	rights := f.guard.rights.Load()
	// The other front may have read another configuration than this one.
	view, ok := f.choose(w, rights, name.Subject, name.View)
	if !ok {
		return
	}
	r.RemoteAddr = name.Remote
	claims := Claims{Subject: name.Subject, whole: name.Whole, Scopes: name.Scopes, Audience: name.Audience, Expires: name.Expires}
	f.dispatch(w, r, caller{claims, view, rights.replaced})
}
