package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// descendants are all living processes below pid, without itself.
func descendants(pid int) []int {
	var all []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread that has ended has no children
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}

// runs says whether a process is an instance of a program.
func runs(pid int, program string) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err == nil && exe == program
}

// serversUnder are the processes of the server below a gateway.
func serversUnder(pid int, server string) []int {
	var found []int
	for _, child := range descendants(pid) {
		if runs(child, server) {
			found = append(found, child)
		}
	}
	return found
}

// ownMemory is what a gateway and its helpers hold that no other process shares, in bytes: the pages that they have
// written. The servers are not counted. NaN where the system cannot say.
func ownMemory(pid int, server string) float64 {
	sum := writtenPages(pid)
	for _, child := range descendants(pid) {
		if !runs(child, server) {
			sum += writtenPages(child)
		}
	}
	return sum
}

func writtenPages(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return math.NaN()
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Private_Dirty:"); ok {
			kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			if err != nil {
				return math.NaN()
			}
			return kilobytes * 1024
		}
	}
	return math.NaN()
}
