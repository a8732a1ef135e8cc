package main

import (
	"errors"
	"fmt"
	"sync"

	"github.com/outlive-mcp/outlive/outlive-fleet/natsengine"
)

// admission lets machines in. Which machine has used a token first is written down before it is let in: all that come while the file is being
// written are written together afterwards, so a thousand that come at the same time wait for a few writes, and without a thread each.
type admission struct {
	*settings

	mu      sync.Mutex
	writing bool // somebody writes, and goes on with those that wait
	waiting []*firstUse
}

// firstUse is a machine that is the first to use a token.
type firstUse struct {
	host, machine, secret, from string

	done chan struct{} // closed when err is set
	err  error
}

// admit reports whether a machine may come in, and remembers which one has used a token first. Only a token that is not good is refused: a
// machine that is refused does not come again, and a hub whose disk is full may have room later.
func (a *admission) admit(host, machine, secret, from string) error {
	err := a.try(host, machine, secret, from)
	if err != nil && !errors.Is(err, errNoToken) && !errors.Is(err, errOtherUser) {
		return fmt.Errorf("%w: %w", natsengine.ErrLater, err)
	}
	return err
}

func (a *admission) try(host, machine, secret, from string) error {
	f, err := a.tokens()
	if err != nil {
		return err
	}
	if k, err := f.check(host, machine, secret); err != nil || k.Machine != "" {
		return err
	}
	u := &firstUse{host: host, machine: machine, secret: secret, from: from, done: make(chan struct{})}
	a.mu.Lock()
	a.waiting = append(a.waiting, u)
	writes := !a.writing
	a.writing = true
	a.mu.Unlock()
	if writes {
		go a.write()
	}
	<-u.done
	return u.err
}

// write writes down who waits, until nobody does.
func (a *admission) write() {
	for {
		a.mu.Lock()
		uses := a.waiting
		a.waiting, a.writing = nil, len(uses) > 0
		a.mu.Unlock()
		if len(uses) == 0 {
			return
		}
		a.note(uses)
	}
}

// note writes down first uses, and says to each whether it was the first.
func (a *admission) note(uses []*firstUse) {
	err := a.changeTokens(func(f *tokenFile) error {
		for _, u := range uses {
			var k *known
			if k, u.err = f.check(u.host, u.machine, u.secret); u.err == nil && k.Machine == "" {
				k.use(u.machine, u.from)
			}
		}
		return nil
	})
	for _, u := range uses {
		if err != nil {
			u.err = err
		}
		close(u.done)
	}
}
