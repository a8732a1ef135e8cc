//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package agentcli

// followedEntries is the maximum number of entries of a folder that is followed: the system needs an open file for
// each entry.
const followedEntries = 64
