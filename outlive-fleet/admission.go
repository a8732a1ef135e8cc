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

	disk    sync.Mutex // held by the one of them that writes, for all that wait
	mu      sync.Mutex
	waiting []*firstUse
}

// firstUse is a machine that is the first to use a token.
type firstUse struct {
	host, machine, secret, from string

	done bool // changes with the lock of the disk
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
	u := &firstUse{host: host, machine: machine, secret: secret, from: from}
	a.mu.Lock()
	a.waiting = append(a.waiting, u)
	a.mu.Unlock()
	a.disk.Lock()
	defer a.disk.Unlock()
	if !u.done { // nobody else has written it
		a.mu.Lock()
		uses := a.waiting
		a.waiting = nil
		a.mu.Unlock()
		a.note(uses)
	}
	return u.err
}

// note writes down first uses, and says to each whether it was the first. The disk's lock is held.
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
		u.done = true
	}
}
