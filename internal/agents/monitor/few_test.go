//go:build race || wine

package monitor

import "time"

// scenarioStride is every how manieth scenario, or ending, is driven: the detector makes the database ten times as slow,
// and Wine (e2e/windows) each access to a file; every scenario goes the same ways through the code. Without them each is driven.
const scenarioStride = 8

// runLength is how many cycles of a test are one run of the monitor, as in its loop. Without the detector each is a run
// of its own, so that whatever counts later has to be written down; with it the database is opened that much less often.
const runLength = 10

// loopTime is how long the loop runs in which a declared agent is gone on with and the day is told of. What happens is over
// soon; the rest shows that it does not happen again.
const loopTime = 10 * time.Minute

// dayLength and dayCount are how long an ordinary day is and how many there are: with the detector an hour takes 18 seconds of a
// processor, and one goroutine lives through it. What may follow from what over hours is asked without it.
const (
	dayLength = time.Hour
	dayCount  = 1
)
