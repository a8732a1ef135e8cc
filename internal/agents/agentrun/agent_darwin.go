package agentrun

import "golang.org/x/sys/unix"

// take waits for the next thing that happens to the process. A signal in the microseconds between the system's answer and
// our taking note of it goes to a number that nobody has, since numbers are given out in turn.
func (a *agent) take(status *unix.WaitStatus) (int, error) {
	pid, err := unix.Wait4(a.pid, status, unix.WUNTRACED, nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken(pid, *status), err
}
