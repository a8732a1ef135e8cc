//go:build unix

package agentrun

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// onTerminal starts a command in a terminal of its own: the agent alone, behind script(1), or behind us.
func onTerminal(b *testing.B, how string, agent ...string) *os.File {
	b.Helper()
	r := exec.Command(agent[0], agent[1:]...)
	switch how {
	case "script":
		if _, err := exec.LookPath("script"); err != nil {
			b.Skip("script(1), which this is compared with, is not there")
		}
		r = exec.Command("script", "-qfc", "'"+strings.Join(agent, "' '")+"'", "/dev/null")
	case "wrapped":
		self, err := os.Executable()
		if err != nil {
			b.Fatal(err)
		}
		r = exec.Command(self, agent...)
		r.Env = append(os.Environ(), wrapIn+"="+b.TempDir())
	}
	master, err := pty.StartWithSize(r, &pty.Winsize{Rows: 40, Cols: 120})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = r.Process.Signal(syscall.SIGTERM)
		_ = master.Close()
		_ = r.Wait() // it was told to go
	})
	return master
}

// BenchmarkKey is the time from a key to its echo, as the person at the keyboard sees it.
func BenchmarkKey(b *testing.B) {
	for _, how := range []string{"direct", "script", "wrapped"} {
		b.Run(how, func(b *testing.B) {
			// The agent echoes by itself, in raw mode, as terminal programs do.
			terminal := onTerminal(b, how, "sh", "-c", "stty raw -echo; echo ready; exec cat")
			for seen := []byte(nil); !bytes.Contains(seen, []byte("ready")); {
				buffer := make([]byte, 100)
				n, err := terminal.Read(buffer)
				if err != nil {
					b.Fatal(err)
				}
				seen = append(seen, buffer[:n]...)
			}
			time.Sleep(100 * time.Millisecond) // cat begins, and what is written at the start has been written
			buffer := make([]byte, 100)
			for b.Loop() {
				if _, err := terminal.WriteString("x"); err != nil {
					b.Fatal(err)
				}
				if _, err := terminal.Read(buffer); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkOutput is how fast an agent's output reaches the person's terminal.
func BenchmarkOutput(b *testing.B) {
	const size = 8 << 20
	for _, how := range []string{"direct", "script", "wrapped"} {
		b.Run(how, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				terminal := onTerminal(b, how, "head", "-c", "8388608", "/dev/zero")
				n, _ := io.Copy(io.Discard, terminal) // a terminal ends with an error
				if n != size {
					b.Fatalf("%d bytes have come", n)
				}
			}
		})
	}
}

// BenchmarkSeen is what looking at an output costs.
func BenchmarkSeen(b *testing.B) {
	outputs := map[string]string{
		"text":     strings.Repeat("a line of a program's output, as long as most of them are, perhaps\r\n", 60),
		"terminal": strings.Repeat("\x1b[2K\x1b[1A\x1b[38;5;12m● \x1b[0mReading \x1b[1mfiles\x1b[22m…\x1b[G", 80) + "\x1b]0;⠋ shop\x07",
		"json":     strings.Repeat(`{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"one more of them"}]},"session_id":"s"}`+"\n", 40),
	}
	for name, output := range outputs {
		b.Run(name, func(b *testing.B) {
			s, now := newSeen(Report{}), time.Now()
			b.SetBytes(int64(len(output)))
			for b.Loop() {
				s.output(0, []byte(output), now, unshared)
			}
		})
	}
	b.Run("snapshot", func(b *testing.B) {
		s := newSeen(Report{})
		s.resize(40, 120)
		for range 100 {
			s.output(0, []byte(outputs["terminal"]), time.Now(), unshared)
		}
		for b.Loop() {
			s.snapshot()
		}
	})
	b.Run("snapshot of the worst", func(b *testing.B) {
		s := newSeen(Report{})
		s.resize(mostRows, mostCols)
		s.output(0, []byte(strings.Repeat("\x1b[1J", 16<<10)), time.Now(), unshared)
		for b.Loop() {
			s.snapshot()
		}
	})
}
