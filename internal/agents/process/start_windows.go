package process

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached gives an orchestrator a console of its own without a window, which what it starts inherits, and a group of its own: no
// signal for us reaches it. (With DETACHED_PROCESS it had no console, and each program that it starts would open a window.)
var detached = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW}
