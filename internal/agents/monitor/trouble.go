package monitor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// registryKey is the agent key of incidents about the registry.
const registryKey = ""

// registryQuiet is how long a PIV registry must be intact until its next failure is reported: failures come in groups.
const registryQuiet = time.Hour

// restoreRegistry puts the last good copy in the place of a broken PIV registry.
func (r *round) restoreRegistry(ctx context.Context) error {
	if err := r.registryStore.restore(r.snapshot); err != nil && !errors.Is(err, atomicfile.ErrChanged) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// The heartbeats in the copy are old; the agents soon write new ones.
	err := r.pause(ctx, r.now.Wall, "the registry was restored only just")
	r.setting.grace = r.why
	return err
}
