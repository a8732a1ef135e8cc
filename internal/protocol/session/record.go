package session

import (
	"github.com/outlive-mcp/outlive/internal/protocol/mcp"
)

// RecordVersion is the version of [Record]. It must be another one whenever a newer program would misunderstand what an
// older one has written. A field that is only added, and may be missing, keeps it.
const RecordVersion = 3

// Record is all of a session that must survive the program that serves it, in a form that can be kept as JSON: with it another
// program brings a new server to where the client believes its server is. What the client said is kept byte for byte. It
// is complete only while no request is in flight in either direction.
type Record struct {
	Format int `json:"format"` // RecordVersion

	Era         mcp.Era `json:"era"`
	InitParams  []byte  `json:"initialize,omitempty"` // raw params
	Version     string  `json:"protocol_version,omitempty"`
	InitResult  []byte  `json:"initialize_result,omitempty"` // raw
	Initialized bool    `json:"initialized,omitempty"`
	Meta        []byte  `json:"meta,omitempty"` // modern: raw _meta of a request

	LogLevel   []byte    `json:"log_level,omitempty"`  // raw params of logging/setLevel
	Subscribed [][]byte  `json:"subscribed,omitempty"` // raw params of each resources/subscribe
	Listens    []*Listen `json:"listens,omitempty"`    // open streams

	Reading [mcp.Lists]mcp.Catalog `json:"reading"` // pages of lists, by digest, that the client has read so far
	Seen    [mcp.Lists]mcp.Catalog `json:"seen"`    // each list as the client last read it to the end
	// Translated: Reading and Seen are of what the server said, in its own era.
	Translated bool `json:"translated,omitempty"`

	Repeats map[string][]byte `json:"repeats,omitempty"` // by tool: raw arguments of the call that is repeated to new processes
	States  []uint64          `json:"states,omitempty"`  // digests of request states that servers have given out
	Tasks   [][]byte          `json:"tasks,omitempty"`   // raw task objects that servers have announced
	// Withdrawn are the raw ids of requests to the client whose server has ended: a late answer to one is for nobody.
	Withdrawn [][]byte `json:"withdrawn,omitempty"`
}

// Record returns what s knows. It shares memory with s.
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

// MoveLists makes what the client has read of lists what the client of another session has read.
func (s *Session) MoveLists(to *Session) {
	to.walks, s.walks = s.walks, [mcp.Lists]walk{}
}
