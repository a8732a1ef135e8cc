//go:build unix && !linux

package wire

import "os"

// adviseSmall has nothing to ask for here.
func adviseSmall([]byte) {}

// reserve writes zeros: the portable way to own the blocks before they are mapped.
func reserve(f *os.File, size int64) error {
	zeros := make([]byte, 1<<16)
	for off := int64(0); off < size; off += int64(len(zeros)) {
		n := min(int64(len(zeros)), size-off)
		if _, err := f.WriteAt(zeros[:n], off); err != nil {
			return err
		}
	}
	return nil
}
