//go:build !(darwin || dragonfly || freebsd || netbsd || openbsd)

package agentcli

// followedEntries is the maximum number of entries of a folder that is followed: the same as for listing.
const followedEntries = listedMost
