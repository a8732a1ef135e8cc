package heartbeat

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const (
	shopUUID = "8b2f5c1e-6a3d-4f0b-9c7e-1d2a3b4c5d6e"
	runOne   = "11111111-2222-3333-4444-555555555555"
	runTwo   = "aaaaaaaa-2222-3333-4444-555555555555"
)

func lookup(a Address) (string, error) {
	known := map[Address]string{
		{Scheme: ByUUID, ID: shopUUID}:                 "shop",
		{Scheme: BySlug, Key: "k3y", ID: "docs-bot"}:   "docs",
		{Scheme: ByToken, ID: "tok"}:                   "kuma",
		{Scheme: ByEndpoint, ID: "core_api", Key: "s"}: "gatus",
	}
	if agent, ok := known[a]; ok {
		return agent, nil
	}
	if a.Scheme == ByEndpoint && a.ID == "core_api" {
		return "", ErrForbidden
	}
	return "", ErrNotFound
}

// intake is one whose clock goes on by a second with each sign.
func intake(t *testing.T) (*Intake, *[]Observation) {
	t.Helper()
	var heard []Observation
	now := night
	return NewIntake(Options{
		Lookup: lookup,
		Sink:   func(o Observation) error { heard = append(heard, o); return nil },
		Now:    func() time.Time { now = now.Add(time.Second); return now },
	}), &heard
}

func send(i http.Handler, method, url, body string, header ...string) *http.Response {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	for n := 0; n+1 < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	return w.Result()
}

func TestIntake(t *testing.T) {
	ping := Observation{Agent: "shop", Source: FromHealthchecks, Tier: SelfReport, Kind: Success}
	with := func(o Observation, change func(*Observation)) *Observation { change(&o); return &o }
	kuma := Observation{Agent: "kuma", Source: FromKuma, Tier: SelfReport, Kind: Success}
	gatus := Observation{Agent: "gatus", Source: FromGatus, Tier: SelfReport, Kind: Success}
	for _, tc := range []struct {
		name, method, url, body string
		status                  int
		answer                  string
		want                    *Observation
	}{
		{"ping", "GET", "/ping/" + shopUUID, "", 200, "OK", &ping},
		{"ping by HEAD", "HEAD", "/ping/" + shopUUID, "", 200, "OK", &ping},
		{"big letters", "GET", "/ping/" + strings.ToUpper(shopUUID), "", 200, "OK", &ping},
		{"body", "POST", "/ping/" + shopUUID, "line one\nline two", 200, "OK", with(ping, func(o *Observation) { o.Note, o.Body = "line one", "line one\nline two" })},
		{"long body", "POST", "/ping/" + shopUUID, strings.Repeat("x", BodyLimit+5), 200, "OK",
			with(ping, func(o *Observation) { o.Note, o.Body = strings.Repeat("x", NoteLimit), strings.Repeat("x", BodyLimit) })},
		{"start", "GET", "/ping/" + shopUUID + "/start?rid=" + runOne, "", 200, "OK", with(ping, func(o *Observation) { o.Kind, o.State, o.Run = Started, Working, runOne })},
		{"fail", "GET", "/ping/" + shopUUID + "/fail", "", 200, "OK", with(ping, func(o *Observation) { o.Kind = Failure })},
		{"log", "POST", "/ping/" + shopUUID + "/log", "hm", 200, "OK", with(ping, func(o *Observation) { o.Kind, o.Note, o.Body = Log, "hm", "hm" })},
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
		{"Kuma", "GET", "/api/push/tok?status=up&msg=OK&ping=", "", 200, `{"ok":true}` + "\n", with(kuma, func(o *Observation) { o.Note = "OK" })},
		{"Kuma with a time", "POST", "/api/push/tok?ping=12.5", "", 200, `{"ok":true}` + "\n", with(kuma, func(o *Observation) { o.Took = 12500 * time.Microsecond })},
		{"Kuma is down", "GET", "/api/push/tok?status=down&msg=oh", "", 200, `{"ok":true}` + "\n", with(kuma, func(o *Observation) { o.Kind, o.Note = Failure, "oh" })},
		{"Kuma, unknown", "GET", "/api/push/nope", "", 404, `{"ok":false,"msg":"Monitor not found or not active."}` + "\n", nil},
		{"Kuma, no ping", "GET", "/api/push/tok?ping=-1", "", 404, `{"ok":false,"msg":"Invalid ping value. Must be between 0 and 100000000000 ms."}` + "\n", nil},
		{"Gatus", "POST", "/api/v1/endpoints/core_api/external?success=true&duration=10s", "", 200, "", with(gatus, func(o *Observation) { o.Took = 10 * time.Second })},
		{"Gatus fails", "POST", "/api/v1/endpoints/core_api/external?success=false&error=oh", "", 200, "", with(gatus, func(o *Observation) { o.Kind, o.Note = Failure, "oh" })},
		{"Gatus fails in a body", "POST", "/api/v1/endpoints/core_api/external?success=false", `{"error":"oh"}`, 200, "", with(gatus, func(o *Observation) { o.Kind, o.Note = Failure, "oh" })},
		{"Gatus without success", "POST", "/api/v1/endpoints/core_api/external", "", 400, "missing or invalid success query parameter", nil},
		{"Gatus, strange duration", "POST", "/api/v1/endpoints/core_api/external?success=true&duration=x", "", 400, `invalid duration: time: invalid duration "x"`, nil},
		{"Gatus by GET", "GET", "/api/v1/endpoints/core_api/external?success=true", "", 405, "method not allowed", nil},
		{"Gatus, unknown", "POST", "/api/v1/endpoints/nope/external?success=true", "", 404, "not found", nil},
		{"something else", "GET", "/", "", 404, "not found", nil},
		{"beside it", "GET", "/pingx/" + shopUUID, "", 404, "not found", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i, heard := intake(t)
			answer := send(i, tc.method, tc.url, tc.body, "Authorization", "Bearer s")
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

func TestGatusAuthorization(t *testing.T) {
	for header, want := range map[string]string{"": "invalid Authorization header", "Basic s": "invalid Authorization header", "Bearer  ": "bearer token must not be empty", "Bearer no": "invalid token"} {
		i, heard := intake(t)
		answer := send(i, "POST", "/api/v1/endpoints/core_api/external?success=true", "", "Authorization", header)
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != 401 || string(text) != want || len(*heard) > 0 {
			t.Errorf("%q: %d %q, heard %v", header, answer.StatusCode, text, *heard)
		}
	}
}

// A sign that cannot be kept is not confirmed: its sender tries again.
func TestIntakeCannotKeep(t *testing.T) {
	i := NewIntake(Options{Lookup: lookup, Sink: func(Observation) error { return errors.New("disk full") }})
	if answer := send(i, "GET", "/ping/"+shopUUID, ""); answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("%d", answer.StatusCode)
	}
}

// Starts and ends are paired as healthchecks pairs them. Each sign is a second after the one before.
func TestRuns(t *testing.T) {
	for _, tc := range []struct {
		name    string
		pings   []string
		took    time.Duration // of the last
		running bool
	}{
		{"start", []string{"/start"}, 0, true},
		{"start and end", []string{"/start", ""}, time.Second, false},
		{"with an exit status", []string{"/start", "/log", "/0"}, 2 * time.Second, false},
		{"with a run", []string{"/start?rid=" + runOne, "?rid=" + runOne}, time.Second, false},
		{"another run's success", []string{"/start?rid=" + runOne, "?rid=" + runTwo}, 0, true},
		{"another run's failure", []string{"/start?rid=" + runOne, "/fail?rid=" + runTwo}, 0, false},
		{"a success without a run", []string{"/start?rid=" + runOne, ""}, 0, false},
		{"the last start counts", []string{"/start", "/start", ""}, time.Second, false},
		{"a second end", []string{"/start", "", ""}, 0, false},
		{"a note ends nothing", []string{"/start", "/log"}, 0, true},
		{"an end without a start", []string{"/fail"}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i, heard := intake(t)
			for _, ping := range tc.pings {
				send(i, "GET", "/ping/"+shopUUID+ping, "")
			}
			last := (*heard)[len(*heard)-1]
			if since, running := i.o.Runs.Since("shop"); last.Took != tc.took || running != tc.running || running == since.IsZero() {
				t.Errorf("took %v, want %v; running since %v, want %v", last.Took, tc.took, since, tc.running)
			}
			// What was kept, shown to a new monitor, leads to the same.
			var again Runs
			for _, o := range *heard {
				again.Apply(o)
			}
			if _, running := again.Since("shop"); running != tc.running {
				t.Errorf("after a restart of the monitor: running %v", running)
			}
		})
	}
}

func FuzzIntake(f *testing.F) {
	f.Add("GET", "/ping/"+shopUUID+"/start?rid="+runOne, "body", "")
	f.Add("POST", "/ping/k3y/docs-bot/7?create=1", "x", "")
	f.Add("GET", "/api/push/tok?status=up&msg=OK&ping=1e308", "", "")
	f.Add("POST", "/api/v1/endpoints/core_api/external?success=false&duration=-1s", `{"error":"x"}`, "Bearer s")
	f.Fuzz(func(t *testing.T, method, target, body, authorization string) {
		r, err := http.NewRequest(method, target, strings.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("Authorization", authorization)
		heard := 0
		i := NewIntake(Options{Lookup: lookup, Sink: func(o Observation) error { heard++; checkBounds(t, o); return nil }})
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
