package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/outlive-mcp/outlive/internal/record/tap"
	"github.com/outlive-mcp/outlive/internal/view/control"
	"github.com/outlive-mcp/outlive/internal/view/overview"
)

const (
	lookEvery = 2 * time.Second // where the system tells nothing of new sockets
	patience  = 2 * time.Second
	retry     = 500 * time.Millisecond
)

// found is a running outlive of our settings.
type found struct {
	control.Instance
	network bool // its clients come over the network
}

// find returns the running outlives of our settings that are not known.
func (s settings) find(ctx context.Context, known map[string]bool) (all []found) {
	list, err := control.Discover(s.dirs...)
	if err != nil {
		return nil // another user's directory: nothing of ours is in it
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, i := range list {
		if known[i.Path] {
			continue
		}
		if status, err := i.Status(ctx); err == nil && status.Telemetry == s.key {
			all = append(all, found{i, status.URL != ""})
		}
	}
	return all
}

// watchRunning records what the outlives of our settings do, until there have been none for a while.
func (s settings) watchRunning(ctx context.Context, r *recorder) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	gone := make(chan string)
	known := map[string]bool{}
	news := notices(ctx, control.SocketDirs(s.dirs...))
	idle := time.NewTimer(idleFor)
	for {
		for _, i := range s.find(ctx, known) {
			known[i.Path] = true
			watching.Go(func() {
				watch(ctx, i, r)
				select {
				case gone <- i.Path:
				case <-ctx.Done():
				}
			})
		}
		if len(known) > 0 {
			idle.Reset(idleFor)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-idle.C:
			if len(known) == 0 {
				return nil
			}
		case path := <-gone:
			delete(known, path)
			idle.Reset(idleFor)
		case <-news:
		case <-time.After(lookEvery):
		}
	}
}

// notices tells of changes in directories; where the system does not, of none.
func notices(ctx context.Context, dirs []string) <-chan fsnotify.Event {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	for _, dir := range dirs {
		_ = w.Add(dir) // it need not exist
	}
	context.AfterFunc(ctx, func() { _ = w.Close() })
	return w.Events
}

// watch records one outlive until it ends.
func watch(ctx context.Context, i found, r *recorder) {
	var both sync.WaitGroup
	both.Go(func() {
		untilGone(ctx, func() error {
			return i.Messages(ctx, false, func() {}, func(line []byte, _ bool) error {
				if m, err := tap.Parse(line); err == nil && m.Call != nil {
					r.call(&m, i.network)
				}
				return nil
			})
		})
	})
	both.Go(func() {
		after := "0" // restarts of the time before we came
		untilGone(ctx, func() error {
			return i.Follow(ctx, after, func() {}, func(n control.News) {
				if after = n.ID; n.Line == nil {
					return
				}
				if e, err := overview.ParseEvent(n.Line); err == nil {
					if e.Server == "" {
						e.Server = i.Name
					}
					r.event(i.Label(), e)
				}
			})
		})
	})
	both.Wait()
}

// untilGone does something again until the other side is gone.
func untilGone(ctx context.Context, once func() error) {
	for ctx.Err() == nil {
		if err := once(); errors.Is(err, control.ErrGone) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(retry):
		}
	}
}
