//go:build unix

package process

import "syscall"

// detached puts an orchestrator into a session of its own: no signal for us reaches it, and all of it can be found.
var detached = &syscall.SysProcAttr{Setsid: true}
