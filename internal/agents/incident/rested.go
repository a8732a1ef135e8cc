package incident

// Work says what is known of the work of an agent that does nothing any more.
type Work uint8

// What can be known.
const (
	WorkUnknown Work = iota // nothing says how done work looks
	WorkLeft                // what would mark it as done is not there
	WorkDone
)

// Rested is the message that an agent has finished, or rests. Nothing has to be done about it. last is what it wrote last.
func Rested(name string, work Work, details, last string) Message {
	titles := map[Work]string{WorkUnknown: "⏸ " + name + " rests", WorkLeft: "⏸ " + name + " rests with work left", WorkDone: "✅ " + name + " has finished"}
	m := Message{Title: titles[work], Body: shorten(last, bodyLimit)}
	m.add("Details", shorten(details, detailsLimit))
	return m
}
