package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// privateMemory reads, in bytes, what only this process holds: the pages it has
// written, and the unwritten pages of its files that nobody else maps now.
func privateMemory(pid int) (written, clean float64) {
	fields := procFields(pid, "smaps_rollup")
	return kilobytes(fields["Private_Dirty"]), kilobytes(fields["Private_Clean"])
}

// resetPeak makes the kernel forget the process's highest resident size and
// returns the present one in bytes.
func resetPeak(pid int) float64 {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return math.NaN()
	}
	return kilobytes(procFields(pid, "status")["VmRSS"])
}

// peak is the highest resident size since resetPeak, in bytes.
func peak(pid int) float64 { return kilobytes(procFields(pid, "status")["VmHWM"]) }

// stateOf reads what must not grow over restarts.
func stateOf(pid int) processState {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return processState{Descriptors: -1, Threads: -1, Private: math.NaN()}
	}
	threads, err := strconv.Atoi(procFields(pid, "status")["Threads"])
	if err != nil {
		threads = -1
	}
	private, _ := privateMemory(pid)
	return processState{Descriptors: len(entries), Threads: threads, Private: private}
}

// childrenOf lists the living processes whose parent is pid. It reads no more of /proc than it needs: the benchmark calls
// it thousands of times without collecting garbage.
func childrenOf(pid int) ([]int, error) {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil, fmt.Errorf("list children of %d: %w", pid, err)
	}
	var children []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // that thread has ended
		}
		for _, word := range bytes.Fields(text) {
			child, err := strconv.Atoi(string(word))
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", list, err)
			}
			if alive(child) {
				children = append(children, child)
			}
		}
	}
	slices.Sort(children)
	return children, nil
}

// alive is false for a process that has ended, also when nobody has reaped it yet.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The command, in parentheses, may hold anything; the state follows it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && string(fields[0]) != "Z"
}

// serversOf lists the servers that outlive runs: they are children of its keeper, or its own where it has none.
func serversOf(pid int) ([]int, error) {
	children, err := childrenOf(pid)
	if err != nil {
		return nil, err
	}
	var servers []int
	for _, child := range children {
		if procFields(child, "status")["Name"] != "outlive-keeper" {
			servers = append(servers, child)
			continue
		}
		kept, err := childrenOf(child)
		if err != nil {
			return nil, err
		}
		servers = append(servers, kept...)
	}
	return servers, nil
}

// deathOf returns what waits for the end of a process, which lives when deathOf returns, and tells how many ms after begin
// the kernel says so.
func deathOf(pid int) (await func(begin time.Time) (float64, error), err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("watch process %d: %w", pid, err)
	}
	return func(begin time.Time) (float64, error) {
		defer unix.Close(fd)
		for {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds()))
			if err == nil {
				return milliseconds(time.Since(begin)), nil
			}
			if !errors.Is(err, unix.EINTR) {
				return 0, fmt.Errorf("watch process %d: %w", pid, err)
			}
		}
	}, nil
}

// procFields reads the "Name: value" lines of one file of a process.
func procFields(pid int, name string) map[string]string {
	fields := make(map[string]string)
	file, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil {
		return fields
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			fields[key] = strings.TrimSpace(value)
		}
	}
	return fields
}

// kilobytes turns "1234 kB" into bytes, and anything else into NaN.
func kilobytes(text string) float64 {
	number, err := strconv.ParseFloat(strings.TrimSuffix(text, " kB"), 64)
	if err != nil {
		return math.NaN()
	}
	return number * 1024
}
