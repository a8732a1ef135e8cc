// Testcount runs `go test -json` and prints what a person wants of it: a line for each package, the whole output of what failed or
// did not end, the thirty slowest tests, and last the counts. It exits 1 when something failed or no test ran at all.
//
// Usage: testcount [-in FOLDER]... [-step NAME] [-out FOLDER] [-raw FILE] [-again] -- go test -json ARGS
//
// The command runs once in each folder, in all of them at a time. With -out, a line for each test goes to FOLDER/NAME.tests.jsonl: name, result, seconds, seed,
// tries. With -again, a failed test that has logged "foreign: PROGRAM" is tried once more by itself; if it then passes, it counts
// as passed and as flaky, and is written to FOLDER/flaky.txt.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
)

// settings are the command line.
type settings struct {
	folders        []string
	step, out, raw string
	again          bool
	command        []string
	groups         sync.Map // process groups of the commands that run
}

func main() {
	s := readSettings()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, os.Interrupt, syscall.SIGTERM) // whoever ends the tests is still told how far they came
	go func() {
		for sig := range asked {
			s.pass(sig.(syscall.Signal))
		}
	}()
	ok, err := s.run()
	if err != nil {
		fmt.Println("testcount:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

func readSettings() *settings {
	s := &settings{}
	flag.Func("in", "run in this folder (more than once: in each, at a time)", func(folder string) error {
		s.folders = append(s.folders, folder)
		return nil
	})
	flag.StringVar(&s.step, "step", "tests", "name of the files in -out")
	flag.StringVar(&s.out, "out", "", "folder for the list of tests and of flaky ones")
	flag.StringVar(&s.raw, "raw", "", "file for what go test says, as JSON")
	flag.BoolVar(&s.again, "again", false, "try a failed test with a foreign program once more")
	flag.Parse()
	if s.command = flag.Args(); len(s.command) == 0 {
		fmt.Fprintln(os.Stderr, "testcount: no command: testcount [flags] -- go test -json ARGS")
		os.Exit(2)
	}
	if len(s.folders) == 0 {
		s.folders = []string{"."}
	}
	return s
}

// run says whether everything passed, the second tries included.
func (s *settings) run() (bool, error) {
	raw := io.Discard
	if s.raw != "" {
		f, err := os.Create(s.raw)
		if err != nil {
			return false, err
		}
		defer f.Close()
		raw = f
	}
	all, err := s.runAll(raw)
	if err != nil {
		return false, err
	}
	if s.again {
		for i, folder := range s.folders {
			s.tryAgain(folder, all[i], raw)
		}
	}
	r := collect(all)
	r.print(os.Stdout)
	if s.out != "" {
		if err := r.write(s.out, s.step); err != nil {
			return false, err
		}
	}
	return r.ok(), nil
}

// runAll runs the command in all folders at a time, and returns a tally for each.
func (s *settings) runAll(raw io.Writer) ([]*tally, error) {
	all, errs := make([]*tally, len(s.folders)), make([]error, len(s.folders))
	var running sync.WaitGroup
	for i, folder := range s.folders {
		all[i] = newTally()
		running.Go(func() { errs[i] = s.runIn(folder, s.command, all[i], raw) })
	}
	running.Wait()
	return all, errors.Join(errs...)
}

// pass passes a signal on to the commands that run.
func (s *settings) pass(sig syscall.Signal) {
	s.groups.Range(func(group, _ any) bool {
		_ = syscall.Kill(-group.(int), sig) // it may have ended
		return true
	})
}

// runIn runs the command in a folder and adds what it says to the tally. That it failed is in what it said. The command has a process
// group of its own: a test that signals its group ends the tests, and is still named as one that did not end.
func (s *settings) runIn(folder string, command []string, t *tally, raw io.Writer) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir, cmd.Stderr = folder, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s in %s: %w", command[0], folder, err)
	}
	s.groups.Store(cmd.Process.Pid, nil)
	defer s.groups.Delete(cmd.Process.Pid)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		fmt.Fprintf(raw, "%s\n", lines.Bytes()) // one write, which no other folder's divides
		t.addLine(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read what the tests say: %w", err)
	}
	if err := cmd.Wait(); err != nil && len(t.failed()) == 0 {
		t.broken = append(t.broken, fmt.Sprintf("%s in %s: %v", filepath.Base(command[0]), folder, err))
	}
	return nil
}
