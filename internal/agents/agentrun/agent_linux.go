package agentrun

import "golang.org/x/sys/unix"

// take waits for the next event of the process. A dead process keeps its PID until nobody can signal it any more: it is
// first observed, then reaped while signals are blocked.
func (a *agent) take(status *unix.WaitStatus) (int, error) {
	if err := unix.Waitid(unix.P_PID, a.pid, nil, unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT, nil); err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	pid, err := unix.Wait4(a.pid, status, unix.WUNTRACED|unix.WNOHANG, nil)
	return a.taken(pid, *status), err
}
