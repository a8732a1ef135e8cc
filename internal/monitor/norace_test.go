//go:build !race

package monitor

// nightStride is every how manieth night is driven.
const nightStride = 1
