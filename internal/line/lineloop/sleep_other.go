//go:build unix && !linux && !outlive_stream

package lineloop

import "golang.org/x/sys/unix"

const unseenFor = 0

// mayBeUnseen is false: there is only one way to sleep here.
func mayBeUnseen() bool { return false }

// sleep waits for a descriptor; it returns how many are ready, 0 or less for an interruption.
func (l *Loop) sleep() int {
	n, _ := unix.Poll(l.fds, int(l.sleepMost.Milliseconds()))
	return n
}

func sysRead(fd int, p []byte, _ bool) (int, error)  { return unix.Read(fd, p) }
func sysWrite(fd int, p []byte, _ bool) (int, error) { return unix.Write(fd, p) }

// rawPipe makes a pipe whose ends do not block.
func rawPipe(p *[2]int) error {
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	for _, fd := range p {
		unix.CloseOnExec(fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
	}
	return nil
}
