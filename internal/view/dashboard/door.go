package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
)

// door knows who may come in. There is one session: the user's.
type door struct {
	token  string // of the link
	cookie string // its name
	seat   string // its value
	form   string // what a form has to bring
}

func newDoor(port string) door {
	return door{token: rand.Text(), cookie: "outlive-dashboard-" + port, seat: rand.Text(), form: rand.Text()}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// admit checks Host, Origin, user and token. false: the request was answered.
func (d *Dashboard) admit(w http.ResponseWriter, r *http.Request) bool {
	why := streamhttp.OwnPage(r)
	if err := d.checkPeer(r); why == "" && err != nil {
		why = "Forbidden: " + err.Error()
	}
	if why != "" {
		http.Error(w, why, http.StatusForbidden)
		return false
	}
	if r.URL.Path == "/metrics" && d.admitsScraper(r) {
		return true
	}
	if given := r.URL.Query().Get("token"); given != "" && r.Method == http.MethodGet && same(given, d.door.token) {
		http.SetCookie(w, &http.Cookie{Name: d.door.cookie, Value: d.door.seat, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(w, r, (&url.URL{Path: onThisHost(r.URL.Path)}).String(), http.StatusSeeOther)
		return false
	}
	if c, err := r.Cookie(d.door.cookie); err == nil && same(c.Value, d.door.seat) {
		return true
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_ = d.pages.ExecuteTemplate(w, "closed", nil) // the browser may have gone
	return false
}

// admitsScraper reports whether a request for metrics needs no cookie.
func (d *Dashboard) admitsScraper(r *http.Request) bool {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return d.opts.Peer != nil || ok && same(token, d.door.token)
}

// onThisHost keeps a redirection on this host: //x would be another one.
func onThisHost(path string) string { return "/" + strings.TrimLeft(path, `/\`) }

func (d *Dashboard) checkPeer(r *http.Request) error {
	if d.opts.Peer == nil {
		return nil
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	remote, err := net.ResolveTCPAddr("tcp", r.RemoteAddr)
	if !ok || err != nil {
		return errors.New("it cannot be told whose connection this is")
	}
	return d.opts.Peer(local, remote)
}
