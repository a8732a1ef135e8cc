package process

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// detached gives an orchestrator no console and a group of its own: no signal for us reaches it.
var detached = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
