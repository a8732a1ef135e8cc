package peer

// userOf returns [ErrUnknown]: Windows does not provide it.
func userOf(int) (uid int, err error) { return 0, ErrUnknown }
