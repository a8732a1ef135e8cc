package cli

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/outlive-mcp/outlive/internal/ops/service"
)

// systemName picks the places of the clients' files, see clients.System, and nativeService who keeps services running.
const systemName, nativeService = "windows", service.ForWindows

// readBeside has nothing to do: there is no terminal's background here.
func readBeside() {}

// upWithSleep is a clock that goes on while the machine sleeps.
func upWithSleep() func() time.Duration { return windows.DurationSinceBoot }

// browserCommand is the command that opens a page in the desktop's browser. The address is not passed through a
// shell.
func browserCommand(page string) []string {
	return []string{"rundll32", "url.dll,FileProtocolHandler", page}
}

// upgradeSignals ask outlive to become the version on disk: there is none here.
var upgradeSignals []os.Signal

// passedOn are the signals that a command gets which is beaten for: Windows has none that can be passed on.
var passedOn []os.Signal

// takeStreams hands the standard streams on as they are: handles are not inherited by number here.
func takeStreams(io streams) (in, out *os.File, err error) { return io.in, io.out, nil }

// become runs another program. Ctrl-C reaches it as well as us.
func become(io streams, path string, args []string) error {
	cmd := exec.Command(path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = io.in, io.out, io.err
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &exitError{code: exit.ExitCode()}
	}
	return err
}

// sharingPossible says why runs cannot share a server on this system.
func sharingPossible() error {
	return errors.New("not supported on Windows yet, which does not tell whose the other end of a socket is: leave it out")
}

// outsideJob lets a process live on when outlive and its job end.
var outsideJob = &syscall.SysProcAttr{CreationFlags: windows.CREATE_BREAKAWAY_FROM_JOB}

// exeSuffix is what names of programs end with.
const exeSuffix = ".exe"

// ofItsOwn makes a process independent of its parent.
func ofItsOwn() *syscall.SysProcAttr { return nil }

// allRead is not known: who may read a file is not in its mode.
func allRead(fs.FileInfo) bool { return false }

// errNoExec says that a program cannot take another one's place in its process.
var errNoExec = errors.New("not possible on Windows: restart the client, or start the gateway anew, instead")

// handoverPossible says why no other program can take our place.
func handoverPossible() error { return errNoExec }

func documentFile() (*os.File, error) { return nil, errNoExec }

func inheritedFile(string) (*os.File, error) { return nil, errNoExec }

func replaceImage(string, []string, []int) error { return errNoExec }

func admitSignals() {}
