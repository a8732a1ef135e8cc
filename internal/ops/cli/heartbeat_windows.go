package cli

import "os"

// passedOn are the signals that a command gets which is beaten for: Windows has none that can be passed on.
var passedOn []os.Signal
