//go:build unix

package child

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// modeVar turns the test binary into a misbehaving child.
const modeVar = "CHILD_TEST_MODE"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVar); mode != "" {
		if code, known := attack(mode, os.Args[1:]); known {
			os.Exit(code)
		}
		os.Exit(misbehave(mode, os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

func misbehave(mode string, args []string) int {
	switch mode {
	case "exit":
		n, _ := strconv.Atoi(args[0])
		return n
	case "signal":
		n, _ := strconv.Atoi(args[0])
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n))
		linger()
	case "write": // and exit at once
		os.Stderr.WriteString("to stderr\n")
		io.WriteString(os.Stdout, strings.Repeat("0123456789abcde\n", 256))
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "deaf": // never reads stdin, lives until it is killed
		fmt.Println("up")
		linger()
	case "deaf-quiet":
		linger()
	case "ignore-term":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("up")
		linger()
	case "term": // exits 7 on SIGTERM
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGTERM)
		fmt.Println("up")
		<-ch
		return 7
	case "stop": // cannot handle SIGTERM: the kernel does
		fmt.Println("up")
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		linger()
	case "family": // a grandchild in our group holds stdout; we tell its pid and exit
		fmt.Println(grandchild(false))
		if args[0] == "stay" {
			linger()
		}
	case "setsid": // a grandchild of its own session
		fmt.Println(grandchild(true))
		linger()
	case "double": // a grandchild in our group whose parent is gone
		r, w, _ := os.Pipe()
		mid, err := os.StartProcess(os.Args[0], []string{os.Args[0], "leave"}, &os.ProcAttr{
			Env: withMode("family"), Files: []*os.File{nil, w, nil}})
		if err != nil {
			return 1
		}
		line := make([]byte, 32)
		n, _ := r.Read(line)
		_, _ = mid.Wait()
		os.Stdout.Write(line[:n])
		linger()
	case "flags": // what our descriptors look like
		for fd := range 3 {
			n, _ := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			fmt.Println(n&unix.O_NONBLOCK != 0)
		}
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			if link, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
				fmt.Println(e.Name(), link)
			}
		}
		fmt.Println("session", func() int { n, _ := unix.Getsid(0); return n }() == os.Getpid())
	}
	return 0
}

// grandchild starts a process that sleeps and holds our stdout, and returns its pid.
func grandchild(setsid bool) int {
	p, err := os.StartProcess(os.Args[0], []string{os.Args[0]}, &os.ProcAttr{
		Env: withMode("deaf-quiet"), Files: []*os.File{nil, os.Stdout, nil},
		Sys: &syscall.SysProcAttr{Setsid: setsid}})
	if err != nil {
		return 0
	}
	return p.Pid
}

// withMode is our environment with another mode. A second assignment would not do: the first one counts.
func withMode(mode string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, modeVar+"=") })
	return append(env, modeVar+"="+mode, noLinger)
}

// noLinger lets a process under the race detector exit at once.
const noLinger = "GORACE=atexit_sleep_ms=0"
