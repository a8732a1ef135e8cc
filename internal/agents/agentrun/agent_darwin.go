package agentrun

import "golang.org/x/sys/unix"

// take waits for the next event of the process. A signal sent in the microseconds between the system's answer and our
// record of it goes to an unused PID, since PIDs are not reused at once.
func (a *agent) take(status *unix.WaitStatus) (int, error) {
	pid, err := unix.Wait4(a.pid, status, unix.WUNTRACED, nil)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken(pid, *status), err
}
