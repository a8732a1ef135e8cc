package proc

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ticks is how many ticks of processor time the kernel counts in a second.
const ticks = 100

// Memory is what a process holds, in bytes.
type Memory struct {
	Dirty    float64 // pages that it has written and shares with nobody
	Clean    float64 // unwritten pages of its files that nobody else maps at the moment
	PSS      float64 // its share of all pages, those of its binary included
	Resident float64
}

// MemoryOf reads the memory of a process.
func MemoryOf(pid int) Memory {
	fields := fieldsOf(pid, "smaps_rollup")
	return Memory{Dirty: inBytes(fields["Private_Dirty"]), Clean: inBytes(fields["Private_Clean"]), PSS: inBytes(fields["Pss"]), Resident: inBytes(fields["Rss"])}
}

// ResetPeak makes the kernel forget the highest resident size of a process, and returns the present one in bytes.
func ResetPeak(pid int) float64 {
	if err := os.WriteFile(file(pid, "clear_refs"), []byte("5"), 0); err != nil {
		return math.NaN()
	}
	return inBytes(fieldsOf(pid, "status")["VmRSS"])
}

// Peak is the highest resident size since ResetPeak, in bytes.
func Peak(pid int) float64 { return inBytes(fieldsOf(pid, "status")["VmHWM"]) }

// Counts are the open descriptors and the threads of a process.
func Counts(pid int) (descriptors, threads int, err error) {
	entries, err := os.ReadDir(file(pid, "fd"))
	if err != nil {
		return 0, 0, err
	}
	threads, err = strconv.Atoi(fieldsOf(pid, "status")["Threads"])
	return len(entries), threads, err
}

// Stat is a living process.
type Stat struct {
	Parent int
	State  byte
	Born   string        // together with the pid it is nobody else's
	CPU    time.Duration // processor time that it has used
}

// StatOf is false for a process that has ended, also when nobody has reaped it yet.
func StatOf(pid int) (s Stat, alive bool) {
	text, err := os.ReadFile(file(pid, "stat"))
	if err != nil {
		return s, false
	}
	// The command, in parentheses, may hold anything; the state is the first field behind it.
	f := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return s, false
	}
	s.State, s.Born = f[0][0], string(f[19])
	var numbers [3]int
	for i, at := range []int{1, 11, 12} { // parent, time of the program, time of the kernel for it
		if numbers[i], err = strconv.Atoi(string(f[at])); err != nil {
			return s, false
		}
	}
	s.Parent, s.CPU = numbers[0], time.Duration(numbers[1]+numbers[2])*time.Second/ticks
	return s, true
}

// Argv is the command line of a process.
func Argv(pid int) []string {
	text, err := os.ReadFile(file(pid, "cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// Runs says whether a process is an instance of a program.
func Runs(pid int, program string) bool {
	exe, err := os.Readlink(file(pid, "exe"))
	return err == nil && exe == program
}

// Has says whether a process has a text in its environment as it was at its start.
func Has(pid int, text string) bool {
	environ, err := os.ReadFile(file(pid, "environ"))
	return err == nil && bytes.Contains(environ, []byte(text))
}

// All are the pids of all processes.
func All() (all []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// Children are the living processes whose parent is pid. It reads no more than it needs: it is called thousands of times
// while no garbage is collected.
func Children(pid int) (children []int) {
	lists, _ := filepath.Glob(file(pid, "task/*/children")) // the pattern is well formed
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread that has ended has no children
		for _, word := range bytes.Fields(text) {
			child, err := strconv.Atoi(string(word))
			if err != nil {
				continue
			}
			if _, alive := StatOf(child); alive {
				children = append(children, child)
			}
		}
	}
	return children
}

// Descendants are all living processes below pid, without itself.
func Descendants(pid int) (all []int) {
	for _, child := range Children(pid) {
		all = append(append(all, child), Descendants(child)...)
	}
	return all
}

// LoadAverage is the load of the machine over the last minute.
func LoadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg") // always there
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// fieldsOf reads the "Name: value" lines of one file of a process.
func fieldsOf(pid int, name string) map[string]string {
	fields := map[string]string{}
	text, _ := os.ReadFile(file(pid, name)) // it may have ended
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			fields[key] = strings.TrimSpace(value)
		}
	}
	return fields
}

func file(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// inBytes turns "1234 kB" into bytes, and anything else into NaN.
func inBytes(text string) float64 {
	number, err := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
	if err != nil {
		return math.NaN()
	}
	return number * 1024
}
