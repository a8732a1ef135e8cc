package heartbeat

import (
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// ErrNotFound is the error of [Intake.Lookup] for an unknown agent and for a wrong key.
var ErrNotFound = errors.New("not found")

// Intake accepts signs of life over HTTP like healthchecks, from its unmodified clients:
//
//	GET, POST, HEAD  /ping/<uuid>[/start|/fail|/log|/<exit status>][?rid=<uuid>]
//	                 /ping/<key>/<slug>[/…]
//
// Access is limited by the listener. Every other path is answered with 404, or, if it is one of another monitor's
// clients (Uptime Kuma's push, Gatus' external endpoint), with 410 and what to use instead.
type Intake struct {
	// Lookup returns the agent of an address, by its UUID in lower case, or by a key and its name. Every error is treated as
	// [ErrNotFound]. It must compare in constant time, because anybody who reaches the listener may try.
	Lookup func(key, id string) (agent string, err error)
	// Sink takes each sign of life before the sender is answered. If it returns an error, the answer is 503, so that
	// the sender tries again.
	Sink func(Observation) error
}

// ServeHTTP implements [http.Handler].
func (i *Intake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=0, no-cache, no-store, must-revalidate, private")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 2 && len(parts) <= 4 && parts[0] == "ping":
		i.ping(w, r, parts[1:])
	case strings.HasPrefix(r.URL.Path, "/api/push/"), strings.HasPrefix(r.URL.Path, "/api/v1/endpoints/"):
		say(w, http.StatusGone, useInstead)
	default:
		say(w, http.StatusNotFound, "not found")
	}
}

var (
	uuidText = lazyregexp.New(`^(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	slugText = lazyregexp.New(`^[A-Za-z0-9_-]{1,100}$`)
)

// useInstead is the answer for the paths of other monitors' clients.
const useInstead = "signs of life are taken as pings only: request the address that 'outlive agent show NAME' prints, and the same with /fail behind it for a failure"

// ping handles a ping in healthchecks' format.
func (i *Intake) ping(w http.ResponseWriter, r *http.Request, parts []string) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Ping-Body-Limit", strconv.Itoa(BodyLimit))
	if r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD, POST")
		say(w, http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	key, id, rest := "", strings.ToLower(parts[0]), parts[1:]
	if !uuidText.MatchString(parts[0]) {
		if len(parts) < 2 || !slugText.MatchString(parts[0]) || !slugText.MatchString(parts[1]) {
			say(w, http.StatusNotFound, "not found")
			return
		}
		key, id, rest = parts[0], parts[1], parts[2:]
	}
	o := Observation{Kind: Success}
	if status, text := o.action(rest); status != 0 {
		say(w, status, text)
		return
	}
	if rid, given := r.URL.Query()["rid"]; given && !uuidText.MatchString(rid[0]) {
		say(w, http.StatusBadRequest, "invalid uuid format")
		return
	}
	agent, err := i.Lookup(key, id)
	switch {
	case err != nil && r.URL.Query().Get("create") == "1":
		say(w, http.StatusNotFound, "not found, and not created: agents are declared in the registry")
		return
	case err != nil:
		say(w, http.StatusNotFound, "not found")
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, BodyLimit))
	if err != nil {
		say(w, http.StatusBadRequest, "the body ends early")
		return
	}
	o.Agent, o.Note, o.Wall = agent, oneLine(string(body)), time.Now()
	if err := i.Sink(o); err != nil {
		say(w, http.StatusServiceUnavailable, "cannot be kept now, try again")
		return
	}
	say(w, http.StatusOK, "OK")
}

// action reads what follows the agent in a ping's path. status is 0 if it is valid.
func (o *Observation) action(rest []string) (status int, text string) {
	if len(rest) == 0 {
		return 0, ""
	}
	if len(rest) > 1 {
		return http.StatusNotFound, "not found"
	}
	switch rest[0] {
	case "start":
		o.Kind, o.State = Started, Working
	case "fail":
		o.Kind = Failure
	case "log":
		o.Kind = Log
	default:
		if rest[0] == "" || strings.Trim(rest[0], "0123456789") != "" {
			return http.StatusNotFound, "not found"
		}
		exit, err := strconv.Atoi(rest[0])
		if err != nil || exit > 255 {
			return http.StatusBadRequest, "invalid url format"
		}
		if o.Exit = &exit; exit != 0 {
			o.Kind = Failure
		}
	}
	return 0, ""
}

func say(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a sender that has closed the connection was received all the same
}
