package gate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
	"github.com/outlive-mcp/outlive/internal/fleet/lease"
)

// Ping is the verb of a command that does nothing: it is answered by a machine that works. It needs no agent.
const Ping = "ping"

// Command is what a machine is to do.
type Command struct {
	// ID is the same whenever the command is sent again. [NewID] makes one.
	ID string `json:"id"`
	// Term is that of the program which commands. Zero: a person does.
	Term lease.Term `json:"term,omitzero"`
	// By says who it was, for people.
	By string `json:"by"`
	// Agent is its name on its machine, Incarnation what it had when this was decided.
	Agent       string `json:"agent,omitempty"`
	Incarnation string `json:"incarnation,omitempty"`
	// Verb is what is to be done: Ping, or a word that [Agents] knows.
	Verb string `json:"verb"`
	Text string `json:"text,omitempty"` // that the agent is given
}

// NewID returns an id that no other command has.
func NewID() string { return rand.Text() }

// Outcome is what became of a command.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"    // it was carried out, now or when it was sent before
	Stale   Outcome = "stale"   // nothing was done: a later holder of the lease was obeyed; see Floor
	Changed Outcome = "changed" // nothing was done: the agent has another incarnation
	Refused Outcome = "refused" // nothing was done: it cannot be; see Text
	Unsure  Outcome = "unsure"  // it may have been carried out, or may be later: the same command can be sent again
)

// Reply is a machine's answer.
type Reply struct {
	Outcome Outcome `json:"outcome"`
	Floor   uint64  `json:"floor,omitempty"` // Stale: the highest epoch of that lease that was obeyed
	Text    string  `json:"text,omitempty"`  // for people
}

// Address is where a machine is commanded.
func Address(host string) string { return engine.Key("cmd", host) }

// Requester is what Send needs of an engine.
type Requester interface {
	Request(ctx context.Context, address string, request []byte) ([]byte, error)
}

// answerTime is how long one answer is waited for, and retryAfter the pause until the command is sent again.
const (
	answerTime = 15 * time.Second
	retryAfter = time.Second
)

// Send has a machine carry out a command, under held, or as a person if held is nil. Without an answer it is sent again until ctx ends; an
// epoch that the machine has passed is raised. The error is [engine.ErrNoOwner] (the machine is not there; nothing was done unless an
// earlier try was), [engine.ErrUnknown] (ctx ended before an answer), or [lease.ErrLost].
func Send(ctx context.Context, bus Requester, host string, c Command, held *lease.Held) (Reply, error) {
	for {
		if held != nil {
			term, err := held.Term()
			if err != nil {
				return Reply{}, err
			}
			c.Term = term
		}
		reply, err := sendOnce(ctx, bus, host, c)
		switch {
		case err == nil && reply.Outcome == Stale && held != nil:
			if err := held.Raise(ctx, reply.Floor); err != nil {
				return reply, err
			}
			continue
		case err == nil && reply.Outcome != Unsure, err != nil && !errors.Is(err, engine.ErrUnknown):
			return reply, err
		}
		select {
		case <-ctx.Done():
			return Reply{Outcome: Unsure}, fmt.Errorf("%s: %w", host, engine.ErrUnknown)
		case <-time.After(retryAfter):
		}
	}
}

func sendOnce(ctx context.Context, bus Requester, host string, c Command) (Reply, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return Reply{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	answer, err := bus.Request(ctx, Address(host), text)
	if err != nil {
		return Reply{}, fmt.Errorf("%s: %w", host, err)
	}
	var reply Reply
	if err := json.Unmarshal(answer, &reply); err != nil {
		return Reply{}, fmt.Errorf("the answer of %s: %w", host, err)
	}
	return reply, nil
}
