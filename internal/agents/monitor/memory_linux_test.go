package monitor

import "os"

// inMemory lets temporary files be in memory, where the system has a place for that: thousands of transactions wait for
// the disk otherwise, and no test cuts the power, which is all that makes a difference.
func inMemory(run func() int) int {
	dir, err := os.MkdirTemp("/dev/shm", "outlive-monitor-")
	if err != nil {
		return run()
	}
	defer os.RemoveAll(dir)
	if os.Setenv("TMPDIR", dir) != nil {
		return run()
	}
	return run()
}
