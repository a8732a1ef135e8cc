//go:build race

package monitor

// nightStride is every how manieth night is driven: the detector makes the database ten times as slow, and every night
// goes the same ways through the code. Without it each is driven.
const nightStride = 8
