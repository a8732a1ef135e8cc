package sharing

import (
	"errors"
	"net"
	"os"
)

func pass(*net.UnixConn) (in, out *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func receive(*net.UnixConn) (in, out *os.File, err error) { return nil, nil, errors.ErrUnsupported }
