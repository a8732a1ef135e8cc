package cli

import (
	"os"
	"syscall"
)

var watchedSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func kindOf(os.Signal) signalKind { return endSignal }
