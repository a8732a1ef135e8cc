//go:build !windows

package hostpath

const drive = ""
