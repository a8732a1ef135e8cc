package stateversion

import (
	"errors"
	"testing"
)

func TestOnlyNewerFilesAreRefused(t *testing.T) {
	for version, newer := range map[int]bool{0: false, 1: false, 2: false, 3: true, 99: true} {
		if err := Check("some.json", version, 2); errors.Is(err, ErrNewer) != newer || !newer && err != nil {
			t.Errorf("version %d of 2: %v", version, err)
		}
	}
}
