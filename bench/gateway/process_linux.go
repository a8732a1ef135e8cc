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

// look tells what a gateway and its servers take at this moment. Its helpers count as its own.
func look(pid int, server string) usage {
	u := usage{Own: memoryOf(pid)}
	for _, child := range descendants(pid) {
		if runs(child, server) {
			u.Processes++
			u.Servers += memoryOf(child).PSS
		} else if m := memoryOf(child); m.PSS > 0 { // it may have ended meanwhile
			u.Own.Private += m.Private
			u.Own.PSS += m.PSS
		}
	}
	return u
}

// memoryOf reads the memory of one process; NaN where the system cannot say.
func memoryOf(pid int) memory {
	m := memory{Private: math.NaN(), PSS: math.NaN()}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return m
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		kilobytes, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			continue
		}
		switch key {
		case "Private_Dirty":
			m.Private = kilobytes * 1024
		case "Pss":
			m.PSS = kilobytes * 1024
		}
	}
	return m
}

// processorTimes are the system's so far, of all processors: busy, and all.
func processorTimes() (busy, all float64) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	for i, word := range strings.Fields(line) {
		ticks, err := strconv.ParseFloat(word, 64)
		if i == 0 || i > 8 || err != nil { // what follows the eighth is counted in others already
			continue
		}
		all += ticks
		if i != 4 && i != 5 { // idle, and waiting for a disk
			busy += ticks
		}
	}
	return busy, all
}
