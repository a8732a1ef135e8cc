package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Deadman pings an address at an interval, so that somebody elsewhere misses it when this machine, this program or its loop
// is gone: healthchecks.io and compatible services.
//
// It pings for the loop that calls [Deadman.Alive]. A loop that has not come round for two intervals is told of once
// (/fail), and then there is silence. The zero Deadman with a URL works; it is used by one owner at a time.
type Deadman struct {
	// URL is the check's address, as healthchecks shows it. /fail is put behind its path.
	URL string
	// Every is the time between two pings. 0: one minute.
	Every time.Duration
	// Client makes the requests. nil: [http.DefaultClient].
	Client *http.Client
	// Logger is told when pings begin to fail, and when they arrive again. nil: nobody is.
	Logger *slog.Logger

	mu      sync.Mutex
	alive   time.Time // the loop's last word
	trouble string    // what it has said is wrong; "": nothing
	poke    chan struct{}
	end     context.CancelFunc
	done    chan struct{}
}

// Times of a Deadman.
const (
	pingEvery = time.Minute
	pingTime  = 10 * time.Second // for one request (healthchecks' own clients wait as long)
	pingAgain = 5 * time.Second  // after the first failure; doubled until it is the interval
	pingBody  = 10_000           // bytes that healthchecks keeps of a ping's body
)

// ErrDeadman is wrapped by the error about an address that cannot be pinged.
var ErrDeadman = errors.New("no address for a dead man's ping")

// Start begins to ping; the loop is taken to be alive now.
func (d *Deadman) Start(ctx context.Context) error {
	u, err := url.Parse(d.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("%w: must be http:// or https://", ErrDeadman) // the address itself is a secret
	}
	if d.Every <= 0 {
		d.Every = pingEvery
	}
	d.Client = cmp.Or(d.Client, http.DefaultClient)
	d.Logger = cmp.Or(d.Logger, slog.New(slog.DiscardHandler))
	d.alive = time.Now()
	d.poke, d.done = make(chan struct{}, 1), make(chan struct{})
	ctx, d.end = context.WithCancel(ctx)
	go d.run(ctx, u)
	return nil
}

// Alive says that the loop has come round, and what is wrong; "": nothing is. Trouble is told at once.
func (d *Deadman) Alive(trouble string) {
	d.mu.Lock()
	changed := trouble != d.trouble
	d.alive, d.trouble = time.Now(), trouble
	d.mu.Unlock()
	if changed {
		select {
		case d.poke <- struct{}{}:
		default:
		}
	}
}

// Close ends the pings and waits for a request that is under way, which is broken off.
func (d *Deadman) Close() {
	if d.end == nil {
		return
	}
	d.end()
	<-d.done
}

// pings is what is known of the pings so far.
type pings struct {
	hung     bool // the loop's silence was told
	failures int  // in a row
}

// next is what the ping that is due says is wrong; "": nothing is. ok is false when silence is due.
func (p *pings) next(silent, every time.Duration, trouble string) (wrong string, ok bool) {
	switch {
	case silent > 2*every && p.hung:
		return "", false
	case silent > 2*every:
		return fmt.Sprintf("the loop has been blocked for %s", silent.Round(time.Second)), true
	}
	return trouble, true
}

// wait is the time until the next ping: the interval, or less after a failure, up to the interval.
func (p *pings) wait(every time.Duration) time.Duration {
	if p.failures == 0 {
		return every
	}
	wait := pingAgain << min(p.failures-1, 10)
	return min(wait, every)
}

func (d *Deadman) run(ctx context.Context, u *url.URL) {
	defer close(d.done)
	var p pings
	for {
		d.mu.Lock()
		silent, trouble := time.Since(d.alive), d.trouble
		d.mu.Unlock()
		if wrong, ok := p.next(silent, d.Every, trouble); ok {
			d.report(ctx, &p, d.ping(ctx, u, wrong))
			if p.failures == 0 {
				p.hung = silent > 2*d.Every
			}
		}
		if !d.pause(ctx, p.wait(d.Every)) {
			return
		}
	}
}

// pause returns when the next ping is due; false: never. Trouble that comes and goes is told once in pingAgain.
func (d *Deadman) pause(ctx context.Context, wait time.Duration) bool {
	began := time.Now()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-d.poke:
			timer.Reset(min(wait, max(pingAgain-time.Since(began), 0)))
		}
	}
}

func (d *Deadman) report(ctx context.Context, p *pings, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil:
		if p.failures++; p.failures == 1 {
			d.Logger.Warn("the dead man's ping does not arrive", slog.Any("error", err))
		}
	default:
		if p.failures > 0 {
			d.Logger.Info("the dead man's ping arrives again", slog.Int("failures", p.failures))
		}
		p.failures = 0
	}
}

// ping makes one request, which says what is wrong; "": nothing is. The errors do not show the address.
func (d *Deadman) ping(ctx context.Context, u *url.URL, wrong string) error {
	ctx, cancel := context.WithTimeout(ctx, pingTime)
	defer cancel()
	method, content := http.MethodGet, io.Reader(nil)
	if wrong != "" {
		u = u.JoinPath("fail")
		method, content = http.MethodPost, strings.NewReader(wrong[:min(len(wrong), pingBody)])
	}
	request, err := http.NewRequestWithContext(ctx, method, u.String(), content)
	if err != nil {
		return fmt.Errorf("ping %s: %w", u.Host, ErrDeadman)
	}
	request.Header.Set("User-Agent", "outlive")
	response, err := d.Client.Do(request)
	if err != nil {
		if with, ok := errors.AsType[*url.Error](err); ok {
			err = with.Err
		}
		return fmt.Errorf("ping %s: %w", u.Host, err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, pingBody)) // the connection can be used again
	_ = response.Body.Close()
	if response.StatusCode/100 != 2 {
		return fmt.Errorf("ping %s: %s", u.Host, response.Status)
	}
	return nil
}
