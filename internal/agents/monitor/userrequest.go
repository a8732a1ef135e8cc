package monitor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// UserRequest is what a person wants of the monitor of a home, from the command line or by a button.
type UserRequest struct {
	ID int64 `json:"-"` // of the database
	// Agent is the agent it is about; not needed with an incident.
	Agent string `json:"-"`
	// Verb is ack, snooze, start, restart, resume, stop, say (gives the agent Text), reset (all budgets are given back), and
	// allow or deny.
	Verb string `json:"-"`
	By   string `json:"by,omitempty"` // who
	// Target is the incident to acknowledge, or whose message is answered; of allow and deny the request of a hook.
	Target string `json:"target,omitempty"`
	Text   string `json:"text,omitempty"`
	// Channel is where what became of it is told; "": where the incident was, or nowhere.
	Channel string `json:"channel,omitempty"`
	Topic   int    `json:"topic,omitempty"` // of the question, in the channel's chat
}

// addRequest writes down what a person wants, for the monitor that runs now or later.
func addRequest(ctx context.Context, db querier, w UserRequest, now time.Time) (id int64, err error) {
	return write(ctx, db, `INSERT INTO wish (at, agent, verb, data) VALUES (?, ?, ?, ?)`, now.UnixMilli(), w.Agent, w.Verb, asJSON{w})
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
	id, err := addRequest(ctx, s.db, w, time.Now())
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
