//go:build !windows

package restart

// highestCode is the highest status that a process can exit with.
const highestCode = 255
