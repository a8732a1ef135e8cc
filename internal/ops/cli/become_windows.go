package cli

import (
	"errors"
	"os/exec"
)

// become runs another program. Ctrl-C reaches it as well as us.
func become(io streams, path string, args []string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.out, io.err
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &exitError{code: exit.ExitCode()}
	}
	return err
}
