package wire

import "errors"

var errNoMapping = errors.New("long lines are kept in memory on this system")

// dropPages has nothing to drop: nothing is mapped.
func dropPages([]byte, int, int) {}

// mapSpool is not available: an unlinked mapped file needs a section object of its own here.
func mapSpool(int) ([]byte, func([]byte), error) { return nil, nil, errNoMapping }
