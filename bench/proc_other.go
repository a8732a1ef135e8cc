//go:build unix && !linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"strconv"
	"time"
)

// Memory is read from /proc, which only Linux has: elsewhere it is not measured.

func privateMemory(int) (written, clean float64) { return math.NaN(), math.NaN() }

func resetPeak(int) float64 { return math.NaN() }

func peak(int) float64 { return math.NaN() }

func stateOf(int) processState {
	return processState{Descriptors: -1, Threads: -1, Private: math.NaN()}
}

// deathOf is not measured: there are no pidfds.
func deathOf(int) (func(time.Time) (float64, error), error) {
	return func(time.Time) (float64, error) { return math.NaN(), nil }, nil
}

// serversOf lists the servers that outlive runs, which are its children: there is no keeper.
func serversOf(pid int) ([]int, error) { return childrenOf(pid) }

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) ([]int, error) {
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("list children of %d: %w", pid, err)
	}
	var children []int
	for _, field := range bytes.Fields(out) {
		child, err := strconv.Atoi(string(field))
		if err != nil {
			return nil, fmt.Errorf("list children of %d: %w", pid, err)
		}
		children = append(children, child)
	}
	return children, nil
}
