//go:build unix && !linux && !outlive_stream

package wire

// goAhead: the loop's sleep has no end here but traffic, so nothing would make it catch up in time.
func (l *Loop) goAhead() bool { return false }

// doze is never reached.
func (l *Loop) doze() int { return l.sleep() }
