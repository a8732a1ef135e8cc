package session

import "github.com/outlive-mcp/outlive/internal/protocol/mcp"

// SawPage records one page of a list that the client has received, parsed by r; first says that the request had no
// cursor. It returns the catalogue when the last page was read, nil before.
func (s *Session) SawPage(r *mcp.Reader, l mcp.List, first bool, result []byte) mcp.Catalog {
	if first {
		s.Reading[l] = mcp.Catalog{}
	}
	if s.Reading[l] == nil {
		return nil // without its beginning, the rest of a list is useless
	}
	if next := r.AddPage(s.Reading[l], l, result); next != nil {
		return nil
	}
	s.Whole[l], s.Reading[l] = s.Reading[l], nil
	return s.Whole[l]
}

// Seen returns the list as the client last read it completely; nil if it never did.
func (s *Session) Seen(l mcp.List) mcp.Catalog { return s.Whole[l] }

// Told replaces what the client has seen, after it was notified of the change.
func (s *Session) Told(l mcp.List, now mcp.Catalog) { s.Whole[l] = now }
