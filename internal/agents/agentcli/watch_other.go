//go:build !(darwin || dragonfly || freebsd || netbsd || openbsd)

package agentcli

// followedEntries is how large a folder may be that is followed: as large as one that is listed.
const followedEntries = listedMost
