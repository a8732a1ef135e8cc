package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo-terminal with a program on it. It answers the questions programs ask a terminal (where is the
// cursor, which colours), without which Codex refuses to start, and keeps every title the program sets.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	exited chan struct{} // closed when the program is gone and everything it wrote is read

	mu      sync.Mutex
	output  []byte // the last keptOutput bytes
	titles  []string
	onTitle func(string)
}

const keptOutput = 1 << 20

// startTerminal starts cmd as the leader of a session of its own on a terminal of 40 lines and 120 columns.
func startTerminal(t *testing.T, cmd *exec.Cmd, onTitle func(string)) *terminal {
	t.Helper()
	master, slave, err := openPTY()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	if err != nil {
		master.Close()
		t.Fatal(err)
	}
	term := &terminal{cmd: cmd, master: master, exited: make(chan struct{}), onTitle: onTitle}
	go term.read()
	return term
}

// openPTY opens both ends of a new pseudo-terminal.
func openPTY() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	raw, err := master.SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	// Control instead of Fd: Fd would make the master blocking, and then closing it would not end the reader.
	var number uint32
	var failed error
	err = raw.Control(func(fd uintptr) {
		if failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); failed != nil {
			return
		}
		if number, failed = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN); failed != nil {
			return
		}
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120})
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, nil, fmt.Errorf("set up the terminal: %w", err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	return master, slave, err
}

// read takes what the program writes until it is gone.
func (term *terminal) read() {
	defer close(term.exited)
	var seen []byte // not looked at yet: sequences are cut in two by reads
	buf := make([]byte, 32<<10)
	for {
		n, err := term.master.Read(buf)
		seen = term.look(append(seen, buf[:n]...))
		term.mu.Lock()
		term.output = append(term.output, buf[:n]...)
		if over := len(term.output) - keptOutput; over > 0 {
			term.output = bytes.Clone(term.output[over:])
		}
		term.mu.Unlock()
		if err != nil {
			_ = term.cmd.Wait() // how it ended is in ProcessState
			term.master.Close()
			return
		}
	}
}

// The sequences that matter: OSC (ended by BEL or ST) and CSI.
var sequence = regexp.MustCompile(`\x1b\](\d+);([^\x07\x1b]*)(?:\x07|\x1b\\)|\x1b\[([?>=]?)([\d;]*)([a-zA-Z])`)

// look reacts to the sequences in data and returns the tail that may be the beginning of one.
func (term *terminal) look(data []byte) []byte {
	end := 0
	for _, m := range sequence.FindAllSubmatchIndex(data, -1) {
		end = m[1]
		group := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return string(data[m[2*i]:m[2*i+1]])
		}
		switch osc, text := group(1), group(2); {
		case osc == "0" || osc == "2":
			term.title(text)
		case (osc == "10" || osc == "11") && text == "?":
			term.send("\x1b]" + osc + ";rgb:2020/2020/2020\x1b\\")
		case osc == "":
			term.answer(group(3) + group(4) + group(5))
		}
	}
	tail := data[end:]
	if i := bytes.LastIndexByte(tail, 0x1b); i >= 0 && len(tail)-i < 4096 {
		return bytes.Clone(tail[i:])
	}
	return nil
}

// answer replies to a query as an xterm does.
func (term *terminal) answer(query string) {
	switch query {
	case "6n":
		term.send("\x1b[1;1R")
	case "5n":
		term.send("\x1b[0n")
	case "c", "0c":
		term.send("\x1b[?1;2c")
	}
}

func (term *terminal) title(text string) {
	term.mu.Lock()
	changed := len(term.titles) == 0 || term.titles[len(term.titles)-1] != text
	if changed {
		term.titles = append(term.titles, text)
	}
	term.mu.Unlock()
	if changed && term.onTitle != nil {
		term.onTitle(text)
	}
}

// send types text.
func (term *terminal) send(text string) {
	_, _ = term.master.WriteString(text) // a program that is gone reads nothing
}

// lastTitle is the title now, "" before the first.
func (term *terminal) lastTitle() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	if len(term.titles) == 0 {
		return ""
	}
	return term.titles[len(term.titles)-1]
}

// raw is the end of what the program wrote, at most n bytes.
func (term *terminal) raw(n int) []byte {
	term.mu.Lock()
	defer term.mu.Unlock()
	return bytes.Clone(term.output[max(0, len(term.output)-n):])
}

var (
	moves  = regexp.MustCompile(`\x1b\[\d*C`)
	escape = regexp.MustCompile(`\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[?>=!]?[\d;:]*[ $]?[a-zA-Z@]|\x1b[()][A-Z0-9]|\x1b[=>78M]`)
)

// text is what the program wrote without escape sequences: good enough to look for words in it.
func (term *terminal) text() string {
	out := moves.ReplaceAllString(string(term.raw(keptOutput)), " ")
	return strings.ReplaceAll(escape.ReplaceAllString(out, ""), "\r", "\n")
}
