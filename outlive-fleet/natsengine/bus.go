package natsengine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// failedHeader is in place of an answer that is too large.
const failedHeader = "Outlive-Failed"

// Request implements [engine.Bus]. The subject ends with the name of the machine that asks, and a server lets each publish under
// its own name only ([Rights]). A server can be made to deliver what it reads to any subject, but with no place for an answer: so a
// question counts where its answer goes to an inbox of the asker. Any machine may write there, and what NATS itself would name it can be
// worked out by whoever was asked before: so each question has a name that nobody can guess.
func (e *Engine) Request(ctx context.Context, address string, request []byte) ([]byte, error) {
	if len(request) > engine.MaxMessage {
		return nil, engine.ErrTooLarge
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return nil, late(ctx, err) // it would be sent all the same
	}
	reply := inboxOf(e.host) + "." + rand.Text()
	answers, err := e.call.SubscribeSync(reply)
	if err != nil {
		return nil, late(ctx, err)
	}
	defer func() { _ = answers.Unsubscribe() }() // the connection may be over, and it with it
	if err := e.call.PublishRequest(address+"."+token(e.host), reply, request); err != nil {
		return nil, late(ctx, err)
	}
	m, err := answers.NextMsgWithContext(ctx)
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

// askerOf is the machine that a request at an address is from; "": the subject names none.
func askerOf(address, subject string) string {
	if names := engine.Names(address, subject); len(names) == 1 {
		return names[0]
	}
	return ""
}

var errNotAsked = errors.New("this machine may not be asked anything: the hub, or the user of a NATS server, was made by another version of outlive: upgrade the older of the two, or make the user anew (outlive fleet nats-user)")

// stopLimit is how long those who ask at the last moment are waited for.
const stopLimit = 2 * time.Second

// Serve implements [engine.Bus].
func (e *Engine) Serve(address string, h engine.Handler) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var answering sync.WaitGroup
	closed := make(chan struct{})
	sub, err := e.call.Subscribe(address+".*", func(m *nats.Msg) {
		asker := askerOf(address, m.Subject)
		if !strings.HasPrefix(m.Reply, inboxOf(asker)+".") {
			return // the asker has not sent it, or wants the answer elsewhere, where we may write and it may not
		}
		answering.Go(func() {
			answer := &nats.Msg{Data: h(ctx, asker, m.Data)}
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
		if last := e.call.LastError(); errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), address+".*") {
			err = errNotAsked
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
