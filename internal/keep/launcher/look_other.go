//go:build !linux

package launcher

import "os"

func look(int, *os.File, *os.File) ([]process, error) { return nil, ErrNone }
