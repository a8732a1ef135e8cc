package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// What Shoutrrr's services put on the wire, and what their refusals mean.
func TestShoutrrr(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	status, got := 200, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var gotify struct{ Message string }
		if json.Unmarshal(body, &gotify) == nil {
			body = []byte(gotify.Message)
		}
		got = fmt.Sprintf("%s %s %s", r.Method, r.URL.Path, body)
		w.WriteHeader(status)
		if status != 200 { // what ntfy and Gotify say, in one
			fmt.Fprintf(w, `{"code":%d01,"http":%d,"error":"no","errorCode":%d,"errorDescription":"because"}`, status, status, status)
			return
		}
		fmt.Fprint(w, `{"id":1}`)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for url, want := range map[string]string{
		"generic://" + host + "/hook-of-s3cret?disabletls=yes": "POST /hook-of-s3cret stalled: <b>&é",
		"ntfy://:tk_s3cretive@" + host + "/night?scheme=http":  "POST /night stalled: <b>&é",
		"gotify://" + host + "/AzyoeNS.D4iJLVa?disabletls=yes": "POST /message stalled: <b>&é",
	} {
		c, err := Open(url, 0)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		for code, failure := range map[int]Failure{200: "", 400: Rejected, 401: Refused, 404: Refused, 429: Limited, 503: Unreachable} {
			status, got = code, ""
			ref, err := c.Send(t.Context(), text("stalled: <b>&é"))
			if got != want || ref != "" {
				t.Errorf("%s: the server got %q, %q", url, got, ref)
			}
			var is SendError
			if e := (*SendError)(nil); errors.As(err, &e) {
				is = *e
			}
			if (err == nil) != (failure == "") || is.Failure != failure || is.Unsure {
				t.Errorf("%s: %d means %+v", url, code, err)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "AzyoeNS")) {
				t.Errorf("a secret is in %q", err)
			}
		}
	}
}

// A service that hangs is given up, and nothing is sent behind its back.
func TestAServiceThatHangs(t *testing.T) {
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	free, begun := make(chan struct{}), make(chan struct{}, 9)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-free
	}))
	defer server.Close()
	s, err := NewShoutrrr("generic://" + strings.TrimPrefix(server.URL, "http://") + "/?disabletls=yes")
	if err != nil {
		t.Fatal(err)
	}
	s.timeout = 50 * time.Millisecond
	var failure *SendError
	if _, err := s.Send(t.Context(), text("a")); !errors.As(err, &failure) || failure.Failure != Unreachable || !failure.Unsure {
		t.Errorf("%+v", err)
	}
	if _, err := s.Send(t.Context(), text("b")); !errors.As(err, &failure) || failure.Failure != Unreachable || failure.Unsure {
		t.Errorf("behind it: %+v", err)
	}
	close(free)
	s.mu.Lock() // the first is over
	s.timeout = time.Minute
	s.mu.Unlock()
	if _, err := s.Send(t.Context(), text("c")); err != nil || len(begun) != 2 {
		t.Errorf("afterwards: %v, %d requests", err, len(begun))
	}
	server.Close()
	if _, err := s.Send(t.Context(), text("d")); !errors.As(err, &failure) || failure.Failure != Unreachable || failure.Unsure {
		t.Errorf("nobody listens: %+v", err)
	}
}
