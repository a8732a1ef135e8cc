//go:build !race && !wine

package monitor

import "time"

// scenarioStride is every how manieth scenario is driven.
const scenarioStride = 1

// runLength is how many cycles of a test are one run of the monitor: each has to find all it needs in the files.
const runLength = 1

// loopTime is how long the loop runs in which a declared agent is gone on with and the day is told of.
const loopTime = 40 * time.Minute

const (
	dayLength = 4 * time.Hour
	dayCount  = 3
)
