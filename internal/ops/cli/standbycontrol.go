package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/outlive-mcp/outlive/internal/line/backend"
	"github.com/outlive-mcp/outlive/internal/record/event"
	"github.com/outlive-mcp/outlive/internal/view/control"
)

// stateStandby is the state of a core that waits for its turn.
const stateStandby = "standby"

// reachableStandby implements control.Source for a core that waits for its turn.
type reachableStandby struct {
	g   *endpoint
	end func()

	config string                 // its name at the start
	why    atomic.Pointer[string] // it waits; nil: it has not been told yet
}

func (r *reachableStandby) Status() control.Status {
	s := r.g.sinks.status(backend.Status{Name: r.g.flags.name, State: stateStandby})
	s.Upgrades, s.Config = r.g.upgrades(), r.config
	if r.g.path != "" {
		s.Config, _ = filepath.Abs(r.g.path) // it fails only without a working directory
	}
	if why := r.why.Load(); why != nil {
		s.Waits = *why
	}
	return s
}

// Used implements control.Source: there are no servers.
func (r *reachableStandby) Used() control.Status { return control.Status{} }

// errInStandby is why nothing is done.
var errInStandby = errors.New("this core waits for its turn, and has no servers until then")

func (r *reachableStandby) Restart(context.Context, control.Order) (control.Result, error) {
	return control.Result{}, errInStandby
}

// Interrupt ends the waiting, and with it the core.
func (r *reachableStandby) Interrupt() { r.end() }

// Reload implements control.Source. It says what is wrong with the configuration, which is read when the turn comes.
func (r *reachableStandby) Reload() error {
	if _, _, err := r.g.nextConfig(); err != nil {
		r.g.tellRejected(err)
		return err
	}
	r.g.sinks.say(event.ConfigLoaded, "The configuration has no mistakes: "+r.g.path+"; it is used when this core's turn comes", slog.Any(event.KeyFiles, []string{r.g.path}))
	return nil
}

func (r *reachableStandby) Upgrade(context.Context, time.Duration) error {
	err := fmt.Errorf("%w: end it and start it again", errInStandby)
	r.g.sinks.say(event.UpgradeFailed, "No upgrade: "+err.Error(), slog.String(event.KeyError, err.Error()))
	return err
}

func (r *reachableStandby) Log(context.Context, string, io.Writer, bool) error { return errInStandby }
