//go:build !race

package monitor

// nightStride is every how manieth night is driven.
const nightStride = 1

// runLength is how many cycles of a test are one run of the monitor: each has to find all it needs in the files.
const runLength = 1
