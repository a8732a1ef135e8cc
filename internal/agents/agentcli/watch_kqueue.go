//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package agentcli

// followedEntries is how large a folder may be that is followed: the system needs an open file for each of its entries.
const followedEntries = 64
