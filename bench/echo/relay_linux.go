package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// relayFor copies bytes between its own stdin and stdout and those of a command, until the command's stdout ends, and returns
// its exit code. It does as little as one can and knows nothing of lines, messages or failures.
//
// Its technique won by measurement over a blocking thread per direction, epoll, splice, the netpoller, and the same loop
// with scheduler-aware system calls: one locked thread that polls both sources and copies what is there.
func relayFor(command []string) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	inR, inW, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make pipe: %w", err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make pipe: %w", err)
	}
	cmd.Stdin, cmd.Stdout = inR, outW
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", command[0], err)
	}
	inR.Close()
	outW.Close()
	toChild := &direction{src: int(os.Stdin.Fd()), dst: int(inW.Fd()), close: inW.Close}
	toClient := &direction{src: int(outR.Fd()), dst: int(os.Stdout.Fd())}
	for _, fd := range []int{toChild.src, toChild.dst, toClient.src, toClient.dst} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return 0, fmt.Errorf("make descriptor %d non-blocking: %w", fd, err)
		}
	}
	runtime.LockOSThread()
	if err := relay(toChild, toClient); err != nil {
		return 0, err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return 0, fmt.Errorf("wait for %s: %w", command[0], err)
	}
	return cmd.ProcessState.ExitCode(), nil
}
