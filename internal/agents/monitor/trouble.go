package monitor

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

// registryKey stands for the registry where an agent is told of.
const registryKey = ""

// registryQuiet is how long a PIV registry must be in order until its next breaking is news: with writers like its own, one
// comes seldom alone.
const registryQuiet = time.Hour

// restoreRegistry puts the last good copy in the place of a broken PIV registry.
func (r *round) restoreRegistry(ctx context.Context) error {
	if err := r.book.restore(r.page); err != nil && !errors.Is(err, atomicfile.ErrChanged) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	// The heartbeats in the copy are old; everybody writes a new one into it soon.
	r.grace, r.why = r.now.Wall.Add(resumeGrace), "the registry was restored only just"
	r.setting.grace = r.why
	return r.store.setFact(ctx, "grace", r.grace)
}
