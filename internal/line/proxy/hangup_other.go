//go:build unix && !linux

package proxy

const (
	hungUp  = 0          // POLLHUP comes unasked
	pending = 0x4004667f // FIONREAD: asks how many bytes are unread
)
