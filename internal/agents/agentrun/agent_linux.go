package agentrun

import "golang.org/x/sys/unix"

// take waits for the next thing that happens to the process. One that has ended keeps its number until nobody can signal it
// any more: first it is looked at, then taken while signals wait.
func (a *agent) take(status *unix.WaitStatus) (int, error) {
	if err := unix.Waitid(unix.P_PID, a.pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pid, err := unix.Wait4(a.pid, status, unix.WUNTRACED|unix.WNOHANG, nil)
	return a.taken(pid, *status), err
}
