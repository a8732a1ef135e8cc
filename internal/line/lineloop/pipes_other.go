//go:build !linux || outlive_stream

package lineloop

// enlargePipes does nothing: only Linux lets a program choose the size of a pipe.
func (l *Loop) enlargePipes(*Source) {}
