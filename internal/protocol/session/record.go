package session

import (
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// RecordVersion is the version of [Record]. It must change whenever a newer program would misinterpret what an older
// one has written. Adding a field that may be missing does not change it.
const RecordVersion = 3

// Record is everything of a session that must survive the program that serves it; it can be encoded as JSON. With it
// another program brings a new server to the state that the client expects. What the client sent is kept byte for
// byte. It is complete only while no request is in flight in either direction.
type Record struct {
	Format int `json:"format"` // RecordVersion

	Era        mcp.Era `json:"era"`
	InitParams []byte  `json:"initialize,omitempty"` // raw params
	Version    string  `json:"protocol_version,omitempty"`
	InitResult []byte  `json:"initialize_result,omitempty"` // raw
	// Refused are the raw params of an initialize that was answered with an error, until the client sends another.
	Refused     []byte `json:"refused_initialize,omitempty"`
	Initialized bool   `json:"initialized,omitempty"`
	Meta        []byte `json:"meta,omitempty"` // modern: raw _meta of a request

	LogLevel   []byte    `json:"log_level,omitempty"`  // raw params of logging/setLevel
	Subscribed [][]byte  `json:"subscribed,omitempty"` // raw params of each resources/subscribe
	Listens    []*Listen `json:"listens,omitempty"`    // open streams

	Reading [mcp.Lists]mcp.Catalog `json:"reading"` // digests of list pages that the client has read so far
	Seen    [mcp.Lists]mcp.Catalog `json:"seen"`    // each list as the client last read it completely
	// Translated says that Reading and Seen are in the server's own era, before translation.
	Translated bool `json:"translated,omitempty"`

	Repeats map[string][]byte `json:"repeats,omitempty"` // by tool: arguments of the call repeated for new processes
	States  []uint64          `json:"states,omitempty"`  // digests of request states that servers have issued
	Tasks   [][]byte          `json:"tasks,omitempty"`   // raw task objects that servers have announced
	// Withdrawn are the raw ids of requests to the client whose server has ended: a late answer to one is for nobody.
	Withdrawn [][]byte `json:"withdrawn,omitempty"`
}

// Record returns the content of s. It shares memory with s.
func (s *Session) Record() Record {
	out := Record{
		Format: RecordVersion, Era: s.Era, InitParams: s.InitParams, Version: s.Version, InitResult: s.InitResult,
		Initialized: s.Initialized, Meta: s.Meta, LogLevel: s.logLevel, Listens: s.listens,
	}
	for _, sub := range s.subs {
		out.Subscribed = append(out.Subscribed, sub.params)
	}
	for l, w := range s.walks {
		out.Reading[l], out.Seen[l] = w.reading, w.seen
	}
	return out
}

// Session returns the session that was recorded.
func (r Record) Session() Session {
	s := Session{
		Era: r.Era, InitParams: r.InitParams, Version: r.Version, InitResult: r.InitResult,
		Initialized: r.Initialized, Meta: r.Meta, logLevel: r.LogLevel, listens: r.Listens,
	}
	for _, params := range r.Subscribed {
		s.Subscribe(params)
	}
	for l := range s.walks {
		s.walks[l] = walk{reading: r.Reading[l], seen: r.Seen[l]}
	}
	return s
}

// MoveLists transfers what the client has read of lists to another session.
func (s *Session) MoveLists(to *Session) {
	to.walks, s.walks = s.walks, [mcp.Lists]walk{}
}
