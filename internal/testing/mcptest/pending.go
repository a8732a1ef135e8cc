package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Pending is a request that was sent.
type Pending struct {
	// ID holds the raw bytes of the request's id.
	ID string

	done   chan struct{}
	result json.RawMessage
	err    error
	// abandoned requests need no answer: the client cancelled them.
	abandoned bool
}

func (p *Pending) finish(result json.RawMessage, err error) {
	select {
	case <-p.done:
		return
	default:
	}
	p.result, p.err = result, err
	close(p.done)
}

// Done is closed when the answer has come, or the stream has ended.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Wait returns the answer: the raw result, an *[RPCError], [ErrClosed], or the context's error.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the answer to %s: %w", p.ID, ctx.Err())
	}
}

// Go sends a request with an id of its own and does not wait.
func (c *Client) Go(method string, params any) *Pending {
	return c.GoID(c.newID(), method, params)
}

// GoID sends a request with the given raw JSON as its id, valid or not, and does not wait. If a request with that id
// is open, it is sent all the same; answers then belong to the oldest open request first.
func (c *Client) GoID(rawID, method string, params any) *Pending {
	p := &Pending{ID: rawID, done: make(chan struct{})}
	line := requestLine(json.RawMessage(rawID), method, c.withMeta(params))
	c.mu.Lock()
	if c.closed {
		p.finish(nil, ErrClosed)
		c.mu.Unlock()
		return p
	}
	c.pending[rawID] = append(c.pending[rawID], p)
	c.sent[rawID] = true
	c.mu.Unlock()
	if err := c.Send(string(line)); err != nil {
		c.mu.Lock()
		p.finish(nil, fmt.Errorf("%w: %w", ErrClosed, err))
		c.mu.Unlock()
	}
	return p
}

// Call sends a request and waits for its answer: the raw result, an *[RPCError] or [ErrClosed]. When ctx is done
// first it cancels the request, as clients do, and returns the context's error.
func (c *Client) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.CallID(ctx, c.newID(), method, params)
}

// CallID is Call with the given raw JSON as the id.
func (c *Client) CallID(ctx context.Context, rawID, method string, params any) (json.RawMessage, error) {
	p := c.GoID(rawID, method, params)
	result, err := p.Wait(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		_ = c.Cancel(p)
	}
	return result, err
}

// Cancel sends notifications/cancelled for p; after that an answer is allowed but not required.
func (c *Client) Cancel(p *Pending) error {
	c.mu.Lock()
	p.abandoned = true
	c.mu.Unlock()
	return c.Notify("notifications/cancelled", object{"requestId": json.RawMessage(p.ID), "reason": "test"})
}

// withMeta adds a modern client's _meta to params that are an object or nil; existing members are kept.
func (c *Client) withMeta(params any) any {
	if !c.Modern {
		return params
	}
	meta := map[string]json.RawMessage{
		metaVersion:      encode(modernVersion),
		metaClientInfo:   encode(clientInfo),
		metaCapabilities: encode(clientCapabilities),
	}
	if c.LogLevel != "" {
		meta[metaLogLevel] = encode(c.LogLevel)
	}
	members := map[string]json.RawMessage{}
	if params != nil {
		if json.Unmarshal(encode(params), &members) != nil {
			return params
		}
	}
	if own := members["_meta"]; own != nil {
		if json.Unmarshal(own, &meta) != nil {
			return params
		}
	}
	members["_meta"] = encode(meta)
	return members
}

// Problems lists everything received that a client should never get, in order: what is not a JSON-RPC message, an
// answer to an unknown id, a second answer.
func (c *Client) Problems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.problems)
}

// Unanswered lists the raw ids of open requests, without cancelled ones, sorted.
func (c *Client) Unanswered() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for id, open := range c.pending {
		for _, p := range open {
			if !p.abandoned {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Verify returns an error that lists every problem and every unanswered request, or nil.
func (c *Client) Verify() error {
	problems := c.Problems()
	if ids := c.Unanswered(); len(ids) > 0 {
		problems = append(problems, "never answered: "+strings.Join(ids, " "))
	}
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "\n"))
}
