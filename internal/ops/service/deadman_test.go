package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// checks is a healthchecks without a network.
type checks struct {
	mu     sync.Mutex
	began  time.Time
	got    []string
	answer func() (int, error)
	late   time.Duration
}

func (c *checks) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		body = " " + string(b)
	}
	c.mu.Lock()
	c.got = append(c.got, strings.TrimSpace(fmt.Sprintf("%v %s %s%s", time.Since(c.began), r.Method, r.URL.RequestURI(), body)))
	answer, late := c.answer, c.late
	c.mu.Unlock()
	if late > 0 {
		select {
		case <-r.Context().Done():
			return nil, r.Context().Err()
		case <-time.After(late):
		}
	}
	status, err := 200, error(nil)
	if answer != nil {
		status, err = answer()
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Body: io.NopCloser(strings.NewReader("OK")), Request: r}, nil
}

// take is what has come since the last look; times count from it.
func (c *checks) take() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	got := c.got
	c.got, c.began = nil, time.Now()
	return got
}

func (c *checks) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// loop says that it is alive each ten seconds, for some time.
func loop(d *Deadman, trouble string, forTime time.Duration) {
	for range forTime / (10 * time.Second) {
		d.Alive(trouble)
		time.Sleep(10 * time.Second)
	}
}

func TestDeadman(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := &checks{began: time.Now()}
		var log bytes.Buffer
		d := &Deadman{URL: "https://hc.example/ping/key/slug?create=1", Client: &http.Client{Transport: world}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if err := d.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := func(what string, list ...string) {
			t.Helper()
			if diff := cmp.Diff(list, world.take()); diff != "" {
				t.Errorf("%s: %s", what, diff)
			}
		}
		time.Sleep(time.Second)
		want("at the start", "0s GET /ping/key/slug?create=1")
		loop(d, "", 3*time.Minute)
		want("alive", "59s GET /ping/key/slug?create=1", "1m59s GET /ping/key/slug?create=1", "2m59s GET /ping/key/slug?create=1")

		loop(d, "registry unreadable", 70*time.Second)
		want("trouble, at once and then as usual", "4s POST /ping/key/slug/fail?create=1 registry unreadable", "1m4s POST /ping/key/slug/fail?create=1 registry unreadable")
		loop(d, "", time.Minute)
		want("well again, at once", "0s GET /ping/key/slug?create=1", "1m0s GET /ping/key/slug?create=1")

		time.Sleep(time.Hour) // the loop hangs
		got := world.take()
		if len(got) == 0 || len(got) > 4 || !strings.Contains(got[len(got)-1], "/fail?create=1 the loop has been blocked for") {
			t.Errorf("a loop that hangs: %q", got)
		}
		loop(d, "", 2*time.Minute)
		if got := world.take(); len(got) < 1 || !strings.Contains(got[0], "GET /ping/key/slug?create=1") {
			t.Errorf("a loop that has come round again: %q", got)
		}
		d.Close()
		time.Sleep(time.Hour)
		want("closed")
		if log.Len() > 0 {
			t.Errorf("log: %s", &log)
		}
	})
}

// A network that is away is neither stormed nor filled the log with, and the address stays a secret.
func TestDeadmanWithoutNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := &checks{began: time.Now(), answer: func() (int, error) { return 0, errors.New("no route to host") }}
		var log bytes.Buffer
		d := &Deadman{URL: "https://hc.example/ping/secret", Client: &http.Client{Transport: world}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		if err := d.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		loop(d, "", time.Hour)
		got := world.take()
		if len(got) < 60 || len(got) > 65 {
			t.Errorf("%d pings in an hour without a network", len(got))
		}
		if diff := cmp.Diff([]string{"0s GET /ping/secret", "5s GET /ping/secret", "15s GET /ping/secret", "35s GET /ping/secret", "1m15s GET /ping/secret", "2m15s GET /ping/secret"}, got[:6]); diff != "" {
			t.Errorf("the first: %s", diff)
		}
		world.set(func() { world.answer = func() (int, error) { return 503, nil } })
		loop(d, "", 5*time.Minute)
		world.set(func() { world.answer, world.late = nil, time.Hour })
		loop(d, "", 5*time.Minute)
		world.set(func() { world.late = 0 })
		loop(d, "", 5*time.Minute)
		d.Close()
		if text := log.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "no route to host") || strings.Contains(text, "secret") {
			t.Errorf("log: %s", text)
		}
	})
}

func TestDeadmanCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		world := &checks{began: time.Now(), late: time.Hour}
		d := &Deadman{URL: "http://hc.example/x", Client: &http.Client{Transport: world}}
		if err := d.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		began := time.Now()
		d.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("closing has taken %v", took)
		}
	})
	var never Deadman
	never.Close()
	for _, bad := range []string{"", "hc.example/x", "ftp://hc.example/x", "http://", "http://[::1/secret"} {
		d := Deadman{URL: bad}
		if err := d.Start(context.Background()); !errors.Is(err, ErrDeadman) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
