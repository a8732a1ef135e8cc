package host

import "github.com/outlive-mcp/outlive/internal/wire"

// OpenLane lets plain calls of the client, which come from in, and their answers, which go to out, be written before the
// backend deals with them, as far as it allows that now. To be called whenever the loop rests. Loop goroutine.
func (h *Host) OpenLane(in *wire.Source, out *wire.Sink) {
	h.Backend.Lane(&h.lane)
	s, _ := h.Backend.Serving().(*server)
	if s != nil && s.process == nil {
		s = nil // it is still being started
	}
	if s == h.laned {
		return
	}
	if h.laned != nil {
		h.laned.output.SendAhead(nil, nil)
	}
	if h.laned = s; s == nil {
		in.SendAhead(nil, nil)
		return
	}
	in.SendAhead(s.input, h.lane.Call)
	s.output.SendAhead(out, h.lane.Answer)
}
