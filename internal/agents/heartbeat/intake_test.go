package heartbeat

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	shopUUID = "8b2f5c1e-6a3d-4f0b-9c7e-1d2a3b4c5d6e"
	runOne   = "11111111-2222-3333-4444-555555555555"
)

func lookup(key, id string) (string, error) {
	known := map[[2]string]string{{"", shopUUID}: "shop", {"k3y", "docs-bot"}: "docs"}
	if agent, ok := known[[2]string{key, id}]; ok {
		return agent, nil
	}
	return "", ErrNotFound
}

// intake returns an Intake, and what it has heard.
func intake(t *testing.T) (*Intake, *[]Observation) {
	t.Helper()
	var heard []Observation
	return &Intake{Lookup: lookup, Sink: func(o Observation) error { heard = append(heard, o); return nil }}, &heard
}

func send(i http.Handler, method, url, body string) *http.Response {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Result()
}

func TestIntake(t *testing.T) {
	ping := Observation{Agent: "shop", Kind: Success}
	with := func(o Observation, change func(*Observation)) *Observation { change(&o); return &o }
	for _, tc := range []struct {
		name, method, url, body string
		status                  int
		answer                  string
		want                    *Observation
	}{
		{"ping", "GET", "/ping/" + shopUUID, "", 200, "OK", &ping},
		{"ping by HEAD", "HEAD", "/ping/" + shopUUID, "", 200, "OK", &ping},
		{"big letters", "GET", "/ping/" + strings.ToUpper(shopUUID), "", 200, "OK", &ping},
		{"body", "POST", "/ping/" + shopUUID, "line one\nline two", 200, "OK", with(ping, func(o *Observation) { o.Note = "line one" })},
		{"long body", "POST", "/ping/" + shopUUID, strings.Repeat("x", BodyLimit+5), 200, "OK",
			with(ping, func(o *Observation) { o.Note = strings.Repeat("x", NoteLimit) })},
		{"start", "GET", "/ping/" + shopUUID + "/start?rid=" + runOne, "", 200, "OK", with(ping, func(o *Observation) { o.Kind, o.State = Started, Working })},
		{"fail", "GET", "/ping/" + shopUUID + "/fail", "", 200, "OK", with(ping, func(o *Observation) { o.Kind = Failure })},
		{"log", "POST", "/ping/" + shopUUID + "/log", "hm", 200, "OK", with(ping, func(o *Observation) { o.Kind, o.Note = Log, "hm" })},
		{"exit 0", "GET", "/ping/" + shopUUID + "/0", "", 200, "OK", with(ping, func(o *Observation) { o.Exit = ptr(0) })},
		{"exit 255", "GET", "/ping/" + shopUUID + "/255/", "", 200, "OK", with(ping, func(o *Observation) { o.Kind, o.Exit = Failure, ptr(255) })},
		{"exit 256", "GET", "/ping/" + shopUUID + "/256", "", 400, "invalid url format", nil},
		{"exit of twenty digits", "GET", "/ping/" + shopUUID + "/99999999999999999999", "", 400, "invalid url format", nil},
		{"no such action", "GET", "/ping/" + shopUUID + "/finish", "", 404, "not found", nil},
		{"too deep", "GET", "/ping/" + shopUUID + "/start/x", "", 404, "not found", nil},
		{"strange run", "GET", "/ping/" + shopUUID + "?rid=7", "", 400, "invalid uuid format", nil},
		{"unknown uuid", "GET", "/ping/" + runOne, "", 404, "not found", nil},
		{"no uuid", "GET", "/ping/shop", "", 404, "not found", nil},
		{"slug", "GET", "/ping/k3y/docs-bot/7", "", 200, "OK", with(ping, func(o *Observation) { o.Agent, o.Kind, o.Exit = "docs", Failure, ptr(7) })},
		{"wrong ping key", "GET", "/ping/nope/docs-bot", "", 404, "not found", nil},
		{"create", "GET", "/ping/k3y/new-bot?create=1", "", 404, "not found, and not created: agents are declared in the registry", nil},
		{"create what is there", "GET", "/ping/k3y/docs-bot?create=1", "", 200, "OK", with(ping, func(o *Observation) { o.Agent = "docs" })},
		{"delete", "DELETE", "/ping/" + shopUUID, "", 405, "method not allowed", nil},
		{"Uptime Kuma's address", "GET", "/api/push/tok?status=up&msg=OK&ping=", "", 410, useInstead, nil},
		{"Gatus' address", "POST", "/api/v1/endpoints/core_api/external?success=true&duration=10s", "", 410, useInstead, nil},
		{"something else", "GET", "/", "", 404, "not found", nil},
		{"beside it", "GET", "/pingx/" + shopUUID, "", 404, "not found", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i, heard := intake(t)
			answer := send(i, tc.method, tc.url, tc.body)
			text, err := io.ReadAll(answer.Body)
			if answer.StatusCode != tc.status || err != nil || string(text) != tc.answer {
				t.Errorf("%d %q %v, want %d %q", answer.StatusCode, text, err, tc.status, tc.answer)
			}
			var want []Observation
			if tc.want != nil {
				want = append(want, *tc.want)
			}
			if diff := cmp.Diff(want, *heard, cmpopts.IgnoreFields(Observation{}, "Wall"), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIntakeHeaders(t *testing.T) {
	i, _ := intake(t)
	h := send(i, "GET", "/ping/"+shopUUID, "").Header
	if h.Get("Ping-Body-Limit") != "10000" || h.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(h.Get("Cache-Control"), "no-store") {
		t.Errorf("headers %v", h)
	}
}

// A sign that cannot be kept is not confirmed: its sender tries again.
func TestIntakeCannotKeep(t *testing.T) {
	i := &Intake{Lookup: lookup, Sink: func(Observation) error { return errors.New("disk full") }}
	if answer := send(i, "GET", "/ping/"+shopUUID, ""); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d", answer.StatusCode)
	}
}

func FuzzIntake(f *testing.F) {
	f.Add("GET", "/ping/"+shopUUID+"/start?rid="+runOne, "body")
	f.Add("POST", "/ping/k3y/docs-bot/7?create=1", "x")
	f.Add("GET", "/api/push/tok?status=up&msg=OK&ping=1e308", "")
	f.Fuzz(func(t *testing.T, method, target, body string) {
		r, err := http.NewRequest(method, target, strings.NewReader(body))
		if err != nil {
			return
		}
		heard := 0
		i := &Intake{Lookup: lookup, Sink: func(o Observation) error { heard++; checkBounds(t, o); return nil }}
		w := httptest.NewRecorder()
		i.ServeHTTP(w, r)
		if (w.Code == http.StatusOK) != (heard == 1) || heard > 1 {
			t.Fatalf("answered %d, and %d were heard", w.Code, heard)
		}
		if w.Code >= 500 {
			t.Fatalf("answered %d", w.Code)
		}
	})
}
