package jsonrpc

// Gathering collects the answers to the requests of one JSON array of messages, which return as one array. It is told each element
// before that is handled, and that no other comes.
type Gathering struct {
	open     map[uint64]int // how often a raw id, by its hash, is still to be answered: two elements may have one id
	answers  []byte
	complete bool // no other element comes
}

// Expect notes an element of the array: a request is answered, and so is what is no message but has an id.
func (g *Gathering) Expect(element []byte) {
	var env Envelope
	id, err := []byte(nil), env.Scan(element)
	switch {
	case err == nil && env.Kind == Batch:
	case err != nil || !env.Version2:
		id, _ = RecoverID(element, element)
	case env.Kind == Request:
		id = env.ID.Of(element)
	}
	if id == nil || IsNull(id) {
		return
	}
	if g.open == nil {
		g.open = map[uint64]int{}
	}
	g.open[gatheringKey(id)]++
}

// Complete notes that the array has no other element.
func (g *Gathering) Complete() { g.complete = true }

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

// Done reports whether the array is complete and nothing is to be answered any more. array are all answers then, nil if there is none.
func (g *Gathering) Done() (array []byte, done bool) {
	switch {
	case !g.complete || len(g.open) > 0:
		return nil, false
	case len(g.answers) == 0:
		return nil, true
	}
	return append(g.answers, ']'), true
}
