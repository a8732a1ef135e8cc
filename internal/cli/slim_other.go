//go:build !linux

package cli

// slimLater has nothing to give back here.
func slimLater() (cancel func()) { return func() {} }
