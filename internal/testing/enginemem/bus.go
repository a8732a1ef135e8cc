package enginemem

import (
	"bytes"
	"context"
	"fmt"
	"sync"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// server answers the requests to one address.
type server struct {
	handler engine.Handler
	ctx     context.Context
	busy    sync.WaitGroup
}

// Request is [engine.Bus]'s.
func (e *Engine) Request(ctx context.Context, address string, request []byte) ([]byte, error) {
	err := ended(ctx)
	if len(request) > engine.MaxMessage {
		err = engine.ErrTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", address, err)
	}
	e.mu.Lock()
	s := e.servers[address]
	if s != nil {
		s.busy.Add(1)
	}
	e.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("ask %s: %w", address, engine.ErrNoOwner)
	}
	answers := make(chan []byte, 1)
	request = bytes.Clone(request)
	go func() {
		defer s.busy.Done()
		answers <- s.handler(s.ctx, "", request)
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("ask %s: %w", address, ended(ctx))
	case answer := <-answers:
		if len(answer) > engine.MaxMessage {
			return nil, fmt.Errorf("ask %s: the answer: %w", address, engine.ErrTooLarge)
		}
		return bytes.Clone(answer), nil
	}
}

// Serve is [engine.Bus]'s. A second server of an address is an error.
func (e *Engine) Serve(address string, h engine.Handler) (func(), error) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &server{handler: h, ctx: ctx}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.servers[address] != nil {
		cancel()
		return nil, fmt.Errorf("serve %s: somebody serves it already", address)
	}
	e.servers[address] = s
	return func() {
		e.mu.Lock()
		if e.servers[address] == s {
			delete(e.servers, address)
		}
		e.mu.Unlock()
		cancel()
		s.busy.Wait()
	}, nil
}
