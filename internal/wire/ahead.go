package wire

// aheadLimit is the longest line, in bytes, that goes ahead: what takes time to look at need not hurry.
const aheadLimit = 4 << 10

// SendAhead lets lines of s go to k as soon as they are read, and OnLine see them after that; a nil k ends it. It is
// for a loop that is woken after a pause: then nothing of what its owner does with a line is in the processor's cache,
// and whoever waits for the line, often on the same processor, would wait for all of it.
//
// may is asked about each such line, which came alone. If it says yes, OnLine must Forward just that line to k, before
// it puts anything else there. It may be asked again only after OnLine has had the line. Everything else the loop does
// (other lines, ticks, posted work) comes after OnLine. Loop goroutine only.
func (s *Source) SendAhead(k *Sink, may func(line []byte) bool) { s.aheadTo, s.mayGo = k, may }

// wentAhead reports whether line was written before its owner gave it, and puts what the kernel did not take of it.
func (k *Sink) wentAhead(line []byte) bool {
	gone := k.ahead
	if gone == nil {
		return false
	}
	k.ahead = nil
	if len(gone) != len(line)+1 || &gone[0] != &line[0] {
		return false
	}
	k.put(gone[k.aheadBy:])
	return true
}
