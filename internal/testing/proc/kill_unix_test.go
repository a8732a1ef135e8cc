//go:build unix

package proc

import "testing"

// This process would end with its group, and so would whatever runs the tests.
func TestKillEndsNoGroup(t *testing.T) {
	for _, pid := range []int{0, -1, -4711} {
		if err := Kill(pid); err == nil {
			t.Errorf("%d was killed", pid)
		}
	}
}
