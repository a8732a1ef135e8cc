//go:build !linux

package process

// Start starts something that outlives us. Elsewhere than on Linux, a start that was not written down is not found again by its token.
func (s System) Start(l Launch) (Identity, error) {
	pid, err := start(l)
	if err != nil {
		return Identity{}, err
	}
	p, err := s.Look(pid)
	if err != nil {
		return Identity{PID: pid}, nil // it has ended already, which the next look will see
	}
	return p.Identity, nil
}
