package session

// RecordVersion is the version of [Record]. It must change whenever a newer program would misinterpret what an older
// one has written. Adding a field that may be missing does not change it.
const RecordVersion = 3

// Record is everything of a session that must survive the program that serves it; it can be encoded as JSON. With it
// another program brings a new server to the state that the client expects. What the client sent is kept byte for
// byte. It is complete only while no request is in flight in either direction.
type Record struct {
	Format int `json:"format"` // RecordVersion

	Session
	// Refused are the raw params of an initialize that was answered with an error, until the client sends another.
	Refused []byte `json:"refused_initialize,omitempty"`
	// Translated says that what the client has read of lists is in the server's own era, before translation.
	Translated bool `json:"translated,omitempty"`

	Repeats map[string][]byte `json:"repeats,omitempty"` // by tool: arguments of the call repeated for new processes
	States  []uint64          `json:"states,omitempty"`  // digests of request states that servers have issued
	Tasks   [][]byte          `json:"tasks,omitempty"`   // raw task objects that servers have announced
	// Withdrawn are the raw ids of requests to the client whose server has ended: a late answer to one is for nobody.
	Withdrawn [][]byte `json:"withdrawn,omitempty"`
}
