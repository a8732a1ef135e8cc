package jsonrpc

// Gathering collects the answers to the requests of one JSON array of messages, which return as one array.
type Gathering struct {
	open    map[uint64]int // how often a raw id, by its hash, is still to be answered: two elements may have one id
	answers []byte
}

// Gather returns one for an array: it expects an answer to each request, and to what is no message but has an id.
func Gather(array []byte) *Gathering {
	g := &Gathering{open: map[uint64]int{}}
	var env Envelope
	for at := range Elements(array) {
		one := at.Of(array)
		id, err := []byte(nil), env.Scan(one)
		switch {
		case err == nil && env.Kind == Batch:
		case err != nil || !env.Version2:
			id, _ = RecoverID(one, one)
		case env.Kind == Request:
			id = env.ID.Of(one)
		}
		if id != nil && !IsNull(id) {
			g.open[gatheringKey(id)]++
		}
	}
	return g
}

// gatheringKey is that of a raw id, or of what is returned in place of an ill-formed one.
func gatheringKey(id []byte) uint64 { return HashID(Sanitize(nil, id)) }

// Awaits reports whether a raw id is still to be answered.
func (g *Gathering) Awaits(id []byte) bool { return g.open[gatheringKey(id)] > 0 }

// Drop notes that a raw id will not be answered: its request was cancelled. It reports whether it was still to be.
func (g *Gathering) Drop(id []byte) bool {
	key := gatheringKey(id)
	switch g.open[key] {
	case 0:
		return false
	case 1:
		delete(g.open, key)
	default:
		g.open[key]--
	}
	return true
}

// Take collects the answer to a raw id, whose bytes it copies. It reports whether that id was still to be answered.
func (g *Gathering) Take(id, answer []byte) bool {
	if !g.Drop(id) {
		return false
	}
	before := byte(',')
	if len(g.answers) == 0 {
		before = '['
	}
	g.answers = append(append(g.answers, before), answer...)
	return true
}

// Done reports whether nothing is to be answered any more. array are all answers then, nil if there is none.
func (g *Gathering) Done() (array []byte, done bool) {
	switch {
	case len(g.open) > 0:
		return nil, false
	case len(g.answers) == 0:
		return nil, true
	}
	return append(g.answers, ']'), true
}
