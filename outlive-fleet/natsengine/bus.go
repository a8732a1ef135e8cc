package natsengine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// failedHeader is in place of an answer that is too large.
const failedHeader = "Outlive-Failed"

// Request implements [engine.Bus].
func (e *Engine) Request(ctx context.Context, address string, request []byte) ([]byte, error) {
	if len(request) > engine.MaxMessage {
		return nil, engine.ErrTooLarge
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	m, err := e.call.RequestWithContext(ctx, address, request)
	switch {
	case err == nil && m.Header.Get(failedHeader) != "":
		return nil, engine.ErrTooLarge
	case err == nil:
		return m.Data, nil
	case errors.Is(err, nats.ErrNoResponders):
		return nil, engine.ErrNoOwner
	}
	return nil, late(ctx, err)
}

// stopLimit is how long those who ask at the last moment are waited for.
const stopLimit = 2 * time.Second

// Serve implements [engine.Bus].
func (e *Engine) Serve(address string, h engine.Handler) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	closed := make(chan struct{})
	sub, err := e.call.Subscribe(address, func(m *nats.Msg) {
		answering.Go(func() {
			answer := &nats.Msg{Data: h(ctx, m.Data)}
			if len(answer.Data) > engine.MaxMessage {
				answer = &nats.Msg{Header: nats.Header{failedHeader: {"too large"}}}
			}
			_ = m.RespondMsg(answer) // who has asked may be gone, or we may be cut off: its time will be over
		})
	})
	if err == nil {
		sub.SetClosedHandler(func(string) { close(closed) })
		if e.call.IsConnected() {
			err = e.call.Flush() // from here on others find us
		}
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("serve %s: %w", address, err)
	}
	return func() {
		cancel()
		// What the server has sent us already is answered. Where the connection is gone nothing more comes.
		if sub.Drain() == nil {
			select {
			case <-closed:
			case <-time.After(stopLimit):
			}
		}
		_ = sub.Unsubscribe() // it may be over
		answering.Wait()
	}, nil
}
