package child

import (
	"os"
	"time"
)

// SavedProcess is a running [Process] in a form that can be kept as JSON. Another image of the same program, executed in
// place of this one, is its parent then and goes on with it; the descriptors must have been made inheritable.
type SavedProcess struct {
	PID     int
	Started time.Time
	Files   [3]int // descriptors of our ends of its streams

	Kept    bool // the keeper is its parent; the rest is of such a one
	Channel int  // descriptor
	PIDFD   int  // descriptor
	Slot    int
	Spares  bool
}

// SavedKeeper is this program's keeper. PID 0: there is none.
type SavedKeeper struct {
	PID   int
	Line  int // descriptor
	PIDFD int // descriptor
}

// Descriptors are those the process needs to be gone on with.
func (s SavedProcess) Descriptors() []int {
	if s.Kept {
		return append(s.Files[:], s.Channel, s.PIDFD)
	}
	return s.Files[:]
}

// Descriptors are those the keeper needs to be gone on with.
func (s SavedKeeper) Descriptors() []int {
	if s.PID == 0 {
		return nil
	}
	return []int{s.Line, s.PIDFD}
}

// Hold keeps the process's end from being noticed until release is called: whoever goes on with the process notices it
// then. ok is false if it has been noticed already. While a process is held nothing can be done to it.
func (p *Process) Hold() (release func(), ok bool) {
	p.mu.Lock()
	if p.reaped || p.reported {
		p.mu.Unlock()
		return nil, false
	}
	return p.mu.Unlock, true
}

// Save returns what is to be known of a process whose end has not been noticed.
func (p *Process) Save() SavedProcess {
	s := SavedProcess{PID: p.pid, Started: p.started}
	for i, f := range p.ours {
		s.Files[i] = descriptor(f)
	}
	p.tree.save(&s)
	return s
}

// descriptor is f's number, without a change of its mode.
func descriptor(f *os.File) int {
	fd := -1
	if rc, err := f.SyscallConn(); err == nil {
		_ = rc.Control(func(p uintptr) { fd = int(p) })
	}
	return fd
}

// Restore goes on with a process that an earlier image of this program has started. streams are its three files, made of
// the saved descriptors. onExit is called as by [Start]. Call [RestoreKeeper] first.
func Restore(s SavedProcess, streams [3]*os.File, onExit func(Status)) (*Process, error) {
	p := &Process{pid: s.PID, started: s.Started, ours: streams}
	if err := p.restoreTree(s); err != nil {
		return nil, err
	}
	go func() {
		status := p.end()
		if onExit != nil {
			onExit(status)
		}
	}()
	return p, nil
}
