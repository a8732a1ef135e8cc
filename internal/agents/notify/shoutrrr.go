package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nicholas-fedor/shoutrrr"
	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

// serviceTime is how long a service may take with one message.
const serviceTime = 20 * time.Second

// Shoutrrr is the channel of a service that Shoutrrr knows: ntfy, Gotify, Slack, Discord, Matrix, e-mail and so on, by
// Shoutrrr's own URLs. It cannot change messages.
type Shoutrrr struct {
	url     string
	scheme  string
	private []string // secret parts of the URL
	timeout time.Duration

	mu   sync.Mutex // one message at a time, and the service
	sent types.Sender
}

// NewShoutrrr returns the channel of a service. It makes no request.
func NewShoutrrr(service string) (*Shoutrrr, error) {
	u, err := url.Parse(service)
	if err != nil {
		return nil, fmt.Errorf("shoutrrr: %w", ErrURL)
	}
	scheme, _, _ := strings.Cut(u.Scheme, "+")
	var r router.ServiceRouter
	if _, err := r.NewService(scheme); err != nil {
		return nil, fmt.Errorf("shoutrrr: %w", err)
	}
	s := &Shoutrrr{url: service, scheme: scheme, timeout: serviceTime, private: []string{service}}
	pass, _ := u.User.Password()
	parts := append(strings.Split(u.Path, "/"), pass, u.User.Username())
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	for _, p := range parts {
		if len(p) >= 6 {
			s.private = append(s.private, p, url.QueryEscape(p), url.PathEscape(p))
		}
	}
	return s, nil
}

// limits of the services below the usual one, in UTF-16 code units: Pushover 1024 characters; ntfy 4096 bytes, up to
// three of which are one unit; Discord 2000.
var limits = map[string]int{"pushover": 1000, "ntfy": 1300, "discord": 1900}

// Limit is the service's.
func (s *Shoutrrr) Limit() int {
	if n, ok := limits[s.scheme]; ok {
		return n
	}
	return 3000
}

// Pace is slow enough for every service.
func (s *Shoutrrr) Pace() Pace { return Pace{Gap: messagePause} }

// Send sends one message. The library has no context: a request that outlasts its time, or ctx, continues, and nothing
// else is sent until it is over.
func (s *Shoutrrr) Send(ctx context.Context, m Message) (ref string, err error) {
	if !s.mu.TryLock() {
		return "", &SendError{Failure: Unreachable, Err: errors.New("the message before this one is still under way")}
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		err := s.send(m.Text.Body)
		s.mu.Unlock() // before the result is returned: the next message may follow at once
		done <- err
	}()
	select {
	case err = <-done:
		return "", s.failure(err)
	case <-ctx.Done():
		return "", &SendError{Failure: Unreachable, Unsure: true, Err: fmt.Errorf("%s: %w", s.scheme, ctx.Err())}
	}
}

// send is called with mu held. Some services log in when they are set up, so that is left until there is something to
// send, and tried again when it fails.
func (s *Shoutrrr) send(text string) error {
	if s.sent == nil {
		r, err := shoutrrr.CreateSender()
		if err != nil {
			return err
		}
		sender, err := r.Locate(s.url)
		if err != nil {
			return &SendError{Failure: Refused, Err: err}
		}
		s.sent = sender
	}
	return s.sent.Send(text, &types.Params{})
}

// status is how the services' errors name an HTTP status: "status: 401", "401 Unauthorized" behind a word like these, or
// in brackets (Gotify), there also with ntfy's two digits more.
var status = lazyregexp.New(`(?i)(?:(?:status|code|response|respond|error|http)[^0-9\n]{0,40}\b|\()([45][0-9]{2})(?:[0-9]{2}\)|\b)`)

// failure classifies an error of the library: its types differ by service, but the text has the HTTP status.
func (s *Shoutrrr) failure(err error) error {
	if err == nil {
		return nil
	}
	failure := &SendError{Failure: Unreachable, Unsure: arrived(err) && !says(err, "dial tcp")} // not every service reports the cause
	if !errors.As(err, &failure) {
		if m := status.FindStringSubmatch(err.Error()); m != nil {
			code, _ := strconv.Atoi(m[1])
			failure.Failure, failure.Unsure = failureOf(code), false
		}
	}
	return &SendError{Failure: failure.Failure, Unsure: failure.Unsure, Err: errors.New(s.scheme + ": " + s.public(err.Error()))}
}

// failureOf classifies an HTTP status.
func failureOf(code int) Failure {
	switch code {
	case 401, 403, 404, 410:
		return Refused
	case 429:
		return Limited
	case 400, 413, 415, 422:
		return Rejected
	}
	return Unreachable
}

// public is an error's text without parts of the URL, which is secret for many services.
func (s *Shoutrrr) public(text string) string {
	for _, p := range s.private {
		text = strings.ReplaceAll(text, p, "***")
	}
	return Redact(text)
}
