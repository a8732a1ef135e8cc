package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/testing/mcptest"
)

const (
	// callPatience is how long one call of the demo may take; nothing comes near it.
	callPatience = 30 * time.Second
	// interruptLag is how much later than outlive we may hear of a Ctrl-C that both get.
	interruptLag = 200 * time.Millisecond
)

// caller calls tools, checks the answers and keeps count. Its methods may be called from any goroutine. Their context ends with Ctrl-C:
// what fails from then on is not an error of outlive.
type caller struct {
	client *mcptest.Client

	mu     sync.Mutex
	counts tally
}

// tally is what a caller has seen.
type tally struct {
	calls       int
	errors      []error
	longest     time.Duration // a call waited, since forgetLongest
	longestEver time.Duration
}

func (c *caller) tally() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

func (c *caller) forgetLongest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.longest = 0
}

// failure is everything the client must not see, or nil: failed calls, wrong answers, and what the raw lines showed.
func (c *caller) failure() error {
	failed := c.tally().errors
	for _, problem := range c.client.Problems() {
		failed = append(failed, errors.New(problem))
	}
	return errors.Join(failed...)
}

// tool calls a tool and returns the text of its answer.
func (c *caller) tool(ctx context.Context, name string, args any) (string, error) {
	return c.checked(ctx, name, args, func(string) error { return nil })
}

// checked calls a tool and counts it, as an error too if it fails or check does not like the answer.
func (c *caller) checked(ctx context.Context, name string, args any, check func(text string) error) (string, error) {
	patient, cancel := context.WithTimeout(ctx, callPatience)
	defer cancel()
	begun := time.Now()
	result, err := c.client.Tool(patient, name, args)
	took := time.Since(begun)
	if err == nil && result.IsError {
		err = errors.New(result.Text)
	}
	if err == nil {
		err = check(result.Text)
	}
	if err != nil {
		err = fmt.Errorf("call of %s: %w", name, err)
		if wasInterrupted(ctx) {
			return "", err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts.calls++
	c.counts.longest = max(c.counts.longest, took)
	c.counts.longestEver = max(c.counts.longestEver, took)
	if err != nil {
		c.counts.errors = append(c.counts.errors, err)
	}
	return result.Text, err
}

// wasInterrupted tells after a failure whether Ctrl-C is the reason.
func wasInterrupted(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(interruptLag):
		return false
	}
}

// steadily calls the server at every tick until quit is closed or a call fails.
func (c *caller) steadily(ctx context.Context, every time.Duration, quit <-chan struct{}) {
	tick := time.Tick(every)
	for n := 1; ; n++ {
		_, err := c.checked(ctx, "add", map[string]int{"a": n, "b": n}, func(text string) error {
			if want := strconv.Itoa(2 * n); text != want {
				return fmt.Errorf("the answer is %q, want %q", text, want)
			}
			return nil
		})
		if err != nil {
			return
		}
		select {
		case <-quit:
			return
		case <-tick:
		}
	}
}

// identity asks which process answers.
func (c *caller) identity(ctx context.Context) (who mcptest.Identity, err error) {
	_, err = c.checked(ctx, "read", nil, func(text string) error { return json.Unmarshal([]byte(text), &who) })
	return who, err
}

// waitForAnother calls without a pause until another process than old answers, and returns that one. So the first
// call that a restart holds up has been under way since its beginning: the longest wait is all of the gap.
func (c *caller) waitForAnother(ctx context.Context, old int) (int, error) {
	for begun := time.Now(); time.Since(begun) < callPatience; {
		who, err := c.identity(ctx)
		if err != nil || who.PID != old {
			return who.PID, err
		}
	}
	return 0, errors.New("the old server still answers")
}
