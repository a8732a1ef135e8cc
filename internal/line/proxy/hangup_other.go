//go:build unix && !linux

package proxy

const (
	hungUp  = 0          // POLLHUP is always reported
	pending = 0x4004667f // FIONREAD: ioctl for the number of unread bytes
)
