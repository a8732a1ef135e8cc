//go:build unix && !linux && !outlive_stream

package lineloop

import "golang.org/x/sys/unix"

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
