package restart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// RestartExitCode is the exit code by which a server asks for a restart (WD-2).
const RestartExitCode = 42

// Meaning is what a server said by the way it ended.
type Meaning uint8

// The meanings of an exit (WD-1).
const (
	Crash     Meaning = iota // unexpected: restart with backoff
	Clean                    // done: no restart
	Requested                // the server requests a restart
	Fail                     // the set-up is wrong: a restart would end the same way
)

// ExitRules are exit codes with a meaning of their own. The zero value is WD-1: 0 is Clean, 42 Requested, all else a
// Crash.
type ExitRules struct {
	RestartOn []int // further codes that mean Requested
	FailOn    []int // codes that mean Fail; a code in both lists is one of these
	Endless   bool  // 0 means Crash: what ends by itself was to stay (GW-2)
}

// Meaning says what an exit meant. A server that died by signal N is given as signalled with code 128+N and has
// crashed, whatever N, unless a list names that code. The lists win over the defaults, so 0 and 42 can be given other
// meanings.
func (r ExitRules) Meaning(code int, signalled bool) Meaning {
	switch {
	case slices.Contains(r.FailOn, code):
		return Fail
	case slices.Contains(r.RestartOn, code):
		return Requested
	case signalled:
		return Crash
	case code == 0 && !r.Endless:
		return Clean
	case code == RestartExitCode:
		return Requested
	}
	return Crash
}

const widestRange = 1 << 10

// ParseCodes reads a list of exit codes and ranges of them, such as "75,100-110", in rising order and each once. An
// empty text is an empty list. Errors say what form is wanted.
func ParseCodes(s string) ([]int, error) {
	var codes []int
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		from, to, isRange := strings.Cut(part, "-")
		low, err := parseCode(from)
		high := low
		if err == nil && isRange {
			high, err = parseCode(to)
		}
		switch {
		case err != nil:
			return nil, fmt.Errorf("exit codes: cannot read %q in %q: want numbers from 0 to %d and ranges, such as 75,100-110",
				part, s, uint64(highestCode))
		case high < low:
			return nil, fmt.Errorf("exit codes: the range %q runs backwards: write %d-%d", part, high, low)
		case high-low >= widestRange:
			return nil, fmt.Errorf("exit codes: the range %q holds more than %d codes: name fewer", part, widestRange)
		}
		for c := low; c <= high; c++ {
			codes = append(codes, c)
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes), nil
}

func parseCode(s string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
	if err != nil || n > highestCode {
		return 0, strconv.ErrSyntax
	}
	return int(n), nil
}
