package session

import "github.com/outlive-mcp/outlive/internal/protocol/mcp"

// SawPage records one page of a list that the client has received, parsed by r; first says that the request had no
// cursor. It returns the catalogue when the last page was read, nil before.
func (s *Session) SawPage(r *mcp.Reader, l mcp.List, first bool, result []byte) mcp.Catalog {
	w := &s.walks[l]
	if first || w.reading == nil {
		if !first {
			return nil // without its beginning, the rest of a walk is useless
		}
		w.reading = mcp.Catalog{}
	}
	if next := r.AddPage(w.reading, l, result); next != nil {
		return nil
	}
	w.seen, w.reading = w.reading, nil
	return w.seen
}

// Seen returns the list as the client last read it completely; nil if it never did.
func (s *Session) Seen(l mcp.List) mcp.Catalog { return s.walks[l].seen }

// Told replaces what the client has seen, after it was notified of the change.
func (s *Session) Told(l mcp.List, now mcp.Catalog) { s.walks[l].seen = now }
