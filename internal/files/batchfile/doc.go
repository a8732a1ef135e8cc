// Package batchfile starts batch files of Windows (*.cmd, *.bat: npx, npm and most agent CLIs are some there) with the arguments
// that were meant.
//
// The system runs them by cmd.exe, which reads the command line again by rules of its own: an & in an argument begins another
// command, %NAME% is replaced, and ^ is dropped. [Line] quotes against that. On other systems there is nothing to do.
//
// It starts no goroutine.
package batchfile
