//go:build !linux

package child

import "time"

// HearDeath hears nothing: there is no keeper here.
func (p *Process) HearDeath(time.Duration) (Status, bool) { return Status{}, false }
