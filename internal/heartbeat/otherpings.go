package heartbeat

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// longestPing is what Uptime Kuma takes for a response time at most, in milliseconds.
const longestPing = 100_000_000_000

// kuma is Uptime Kuma's push monitor. A status that is not "up" is down.
func (i *Intake) kuma(w http.ResponseWriter, r *http.Request, token string) {
	q := r.URL.Query()
	ping, err := strconv.ParseFloat(q.Get("ping"), 64)
	if err != nil || math.IsNaN(ping) {
		ping = 0 // an empty one is what the URL shown to users has
	}
	if ping < 0 || ping > longestPing {
		answerKuma(w, http.StatusNotFound, "Invalid ping value. Must be between 0 and 100000000000 ms.")
		return
	}
	agent, err := i.o.Lookup(Address{Scheme: ByToken, ID: token})
	if err != nil {
		answerKuma(w, http.StatusNotFound, "Monitor not found or not active.")
		return
	}
	o := Observation{Agent: agent, Source: FromKuma, Kind: Success, Note: oneLine(q.Get("msg")), Took: time.Duration(math.Min(ping*1e6, math.MaxInt64/2))}
	if status := q.Get("status"); status != "" && status != "up" {
		o.Kind = Failure
	}
	i.hand(w, o, func() { answerKuma(w, http.StatusOK, "") })
}

func answerKuma(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	answer := struct {
		OK      bool   `json:"ok"`
		Message string `json:"msg,omitempty"`
	}{status == http.StatusOK, message}
	_ = json.NewEncoder(w).Encode(answer)
}

// gatus is Gatus' external endpoint.
func (i *Intake) gatus(w http.ResponseWriter, r *http.Request, key string) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		say(w, http.StatusMethodNotAllowed, "method not allowed")
		return
	}
	q := r.URL.Query()
	success := q.Get("success")
	if success != "true" && success != "false" {
		say(w, http.StatusBadRequest, "missing or invalid success query parameter")
		return
	}
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	token = strings.TrimSpace(token)
	switch {
	case !bearer:
		say(w, http.StatusUnauthorized, "invalid Authorization header")
		return
	case token == "":
		say(w, http.StatusUnauthorized, "bearer token must not be empty")
		return
	}
	agent, err := i.o.Lookup(Address{Scheme: ByEndpoint, ID: key, Key: token})
	switch {
	case errors.Is(err, ErrForbidden):
		say(w, http.StatusUnauthorized, ErrForbidden.Error())
		return
	case err != nil:
		say(w, http.StatusNotFound, "not found")
		return
	}
	o := Observation{Agent: agent, Source: FromGatus, Kind: Success}
	if text := q.Get("duration"); text != "" {
		took, err := time.ParseDuration(text)
		if err != nil {
			say(w, http.StatusBadRequest, "invalid duration: "+err.Error())
			return
		}
		o.Took = max(took, 0)
	}
	if success == "false" {
		o.Kind, o.Note = Failure, oneLine(gatusError(r))
	}
	i.hand(w, o, func() { say(w, http.StatusOK, "") })
}

// gatusError is what went wrong, which comes in the query or, since Gatus 5.13, in a body of JSON.
func gatusError(r *http.Request) string {
	if text := r.URL.Query().Get("error"); text != "" {
		return text
	}
	var body struct {
		Error string `json:"error"`
	}
	if json.NewDecoder(io.LimitReader(r.Body, BodyLimit)).Decode(&body) != nil {
		return ""
	}
	return body.Error
}
