//go:build !outlive_stream

package lineloop

import "golang.org/x/sys/unix"

func rawPipe(p *[2]int) error { return unix.Pipe2(p[:], unix.O_CLOEXEC|unix.O_NONBLOCK) }
