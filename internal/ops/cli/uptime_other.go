//go:build !linux

package cli

import "time"

// upWithSleep is a clock that goes on while the machine sleeps; nil: there is none that is known here.
func upWithSleep() func() time.Duration { return nil }
