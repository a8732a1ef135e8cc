package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// UserRequest is a user's request to the monitor of a home.
type UserRequest struct {
	// Agent is the agent it is about; not needed with an Incident.
	Agent string
	// Verb is ack, snooze, start, restart, resume, stop, say (gives the agent Text), reset (all budgets are given back), and
	// allow or deny, whose Request is that of a hook.
	Verb string
	// Incident is the incident to acknowledge.
	Incident string
	Request  string
	Text     string
	By       string // who
}

// answerEvery is the polling interval for the answer.
const answerEvery = 100 * time.Millisecond

// ErrNobody says that no monitor runs in the home: the request is handled when one does.
var ErrNobody = errors.New("no monitor is running here: it is done once one does")

// Ask sends a request to the monitor of a home and waits for the answer until ctx ends. The request is stored either
// way. The error is [ErrNobody] when no monitor runs.
func Ask(ctx context.Context, opts Options, w UserRequest) (answer string, err error) {
	opts = opts.withDefaults()
	if err := os.MkdirAll(opts.Home, 0o700); err != nil {
		return "", fmt.Errorf("user request: %w", err)
	}
	s, err := openStore(ctx, opts.Database())
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	kept := userRequest{Agent: w.Agent, Verb: w.Verb, By: w.By, Target: w.Incident, Text: w.Text}
	if w.Request != "" {
		kept.Target = w.Request
	}
	id, err := s.addRequest(ctx, kept, time.Now())
	if err != nil {
		return "", err
	}
	if err := Ring(opts.Home); err != nil {
		return "", err
	}
	for {
		answer, done, err := s.answered(ctx, id)
		switch {
		case err != nil || done:
			return answer, err
		case holder(opts.PIDFile) == 0:
			return "", ErrNobody
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("the monitor has not handled the request yet: %w", ctx.Err())
		case <-time.After(answerEvery):
		}
	}
}
