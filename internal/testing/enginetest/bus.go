package enginetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/internal/fleet/engine"
)

// serve serves at a member until the test ends, or until the returned function is called.
func (f fleet) serve(t *testing.T, member int, address string, h engine.Handler) func() {
	t.Helper()
	stop, err := f.members[member].Serve(address, h)
	if err != nil {
		t.Fatalf("Serve %s: %v", address, err)
	}
	stop = sync.OnceFunc(stop)
	t.Cleanup(stop)
	return stop
}

// ask asks until somebody is there: that an address is served may take a while to become known.
func (f fleet) ask(t *testing.T, member int, address, request string) string {
	t.Helper()
	for {
		answer, err := f.members[member].Request(f.ctx, address, []byte(request))
		if err == nil {
			return string(answer)
		}
		if !errors.Is(err, engine.ErrNoOwner) {
			t.Fatalf("Request %s: %v", address, err)
		}
		pause(t, f.ctx, "nobody serves "+address)
	}
}

func echo(_ context.Context, _ string, request []byte) []byte {
	return append([]byte("re: "), request...)
}

func testRequest(t *testing.T, f fleet) {
	address := engine.Key("cmd", "host one")
	f.serve(t, 0, address, echo)
	for i := range f.members {
		for _, request := range []string{"one", ""} {
			if got := f.ask(t, i, address, request); got != "re: "+request {
				t.Errorf("member %d asks %q and gets %q", i, request, got)
			}
		}
	}
}

// An address that nobody serves, not yet or not any more, is known at once.
func testNoOwner(t *testing.T, f fleet) {
	address := engine.Key("cmd", "a")
	nobody := func() {
		t.Helper()
		begin := time.Now()
		_, err := f.members[1].Request(f.ctx, address, nil)
		if wants(t, "Request", err, engine.ErrNoOwner); time.Since(begin) > 5*time.Second {
			t.Errorf("it took %s", time.Since(begin))
		}
	}
	nobody()
	stop := f.serve(t, 0, address, echo)
	f.ask(t, 1, address, "one")
	stop()
	for {
		if _, err := f.members[1].Request(f.ctx, address, nil); err != nil {
			break
		}
		pause(t, f.ctx, "a server that has stopped still answers")
	}
	nobody()
	f.serve(t, 2, address, echo) // it may be another's now
	f.ask(t, 1, address, "two")
}

// A request without an answer may have been carried out: it is delivered once, and its asker is told that it is unknown.
func testUnknown(t *testing.T, f fleet) {
	address := engine.Key("cmd", "a")
	var calls atomic.Int32
	begun, release := make(chan struct{}), make(chan struct{})
	f.serve(t, 0, address, func(_ context.Context, _ string, request []byte) []byte {
		if string(request) == "wait" {
			calls.Add(1)
			close(begun)
			<-release
		}
		return nil
	})
	f.ask(t, 1, address, "")
	ctx, cancel := context.WithCancel(f.ctx)
	failed := make(chan error, 1)
	go func() {
		_, err := f.members[1].Request(ctx, address, []byte("wait"))
		failed <- err
	}()
	<-begun
	cancel()
	wants(t, "Request", <-failed, engine.ErrUnknown)
	close(release)
	f.ask(t, 1, address, "")
	if n := calls.Load(); n != 1 {
		t.Errorf("it was delivered %d times", n)
	}
}

// A slow answer holds up no other, and each asker gets its own.
func testManyAtOnce(t *testing.T, f fleet) {
	address := engine.Key("cmd", "a")
	const many = 20
	var inside sync.WaitGroup
	inside.Add(many)
	f.serve(t, 0, address, func(_ context.Context, _ string, request []byte) []byte {
		if len(request) > 0 {
			inside.Done()
			inside.Wait() // until all are here
		}
		return request
	})
	f.ask(t, 1, address, "")
	f.ask(t, 2, address, "")
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			request := []byte(strconv.Itoa(i))
			answer, err := f.members[1+i%2].Request(f.ctx, address, request)
			if err != nil || !bytes.Equal(answer, request) {
				t.Errorf("%s gets %q, %v", request, answer, err)
			}
		})
	}
	all.Wait()
}

// Stop ends the handler's context and waits for it.
func testStop(t *testing.T, f fleet) {
	address := engine.Key("cmd", "a")
	begun := make(chan struct{})
	var over atomic.Bool
	stop := f.serve(t, 0, address, func(ctx context.Context, _ string, request []byte) []byte {
		if len(request) > 0 {
			close(begun)
			<-ctx.Done()
			over.Store(true)
		}
		return nil
	})
	f.ask(t, 1, address, "")
	answered := make(chan error, 1)
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	go func() {
		_, err := f.members[1].Request(ctx, address, []byte("wait"))
		answered <- err
	}()
	<-begun
	stop()
	if !over.Load() {
		t.Error("stop did not wait for the handler")
	}
	cancel() // its answer may be lost with the server
	if err := <-answered; err != nil {
		wants(t, "the request that was being answered", err, engine.ErrUnknown)
	}
}

func testMessageSizes(t *testing.T, f fleet) {
	address := engine.Key("cmd", "a")
	f.serve(t, 0, address, func(_ context.Context, _ string, request []byte) []byte {
		if string(request) == "more" {
			return text(engine.MaxMessage + 1)
		}
		return request
	})
	f.ask(t, 1, address, "")
	answer, err := f.members[1].Request(f.ctx, address, text(engine.MaxMessage))
	if err != nil || len(answer) != engine.MaxMessage {
		t.Errorf("the largest message: %d bytes are answered, %v", len(answer), err)
	}
	_, err = f.members[1].Request(f.ctx, address, text(engine.MaxMessage+1))
	wants(t, "a request", err, engine.ErrTooLarge)
	_, err = f.members[1].Request(f.ctx, address, []byte("more"))
	wants(t, "an answer", err, engine.ErrTooLarge)
}
