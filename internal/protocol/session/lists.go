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
	s.Seen[l], s.Reading[l] = s.Reading[l], nil
	return s.Seen[l]
}
