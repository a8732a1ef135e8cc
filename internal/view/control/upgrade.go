package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// upgradeLook is how often an outlive that is being upgraded is asked how it stands.
const upgradeLook = 20 * time.Millisecond

// comeBack is how long the new program may take to show itself, beyond what the old one waits for a quiet moment.
const comeBack = time.Minute

// Upgrade has the program on disk take the instance's place and returns how it stands afterwards, or says why that was
// not possible: then it goes on as it was. wait is how long it may wait for a quiet moment.
func (i Instance) Upgrade(ctx context.Context, wait time.Duration) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, wait+comeBack)
	defer cancel()
	before, err := i.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	err = i.ask(ctx, http.MethodPost, "/v1/upgrade?wait="+wait.String(), nil, &struct{}{})
	if _, told := errors.AsType[*refusal](err); told {
		return Status{}, err
	}
	// The connection went with the old program; the new one makes the socket anew.
	for {
		now, err := i.Status(ctx)
		if err == nil && now.Upgrades > before.Upgrades {
			return now, nil
		}
		select {
		case <-ctx.Done():
			return Status{}, fmt.Errorf("%s (pid %d) does not come back: %w", i.Name, i.PID, errors.Join(err, ctx.Err()))
		case <-time.After(upgradeLook):
		}
	}
}
