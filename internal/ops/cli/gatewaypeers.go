package cli

import (
	"net"
	"os"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/gateway/peers"
)

// peerFlags are those of `outlive gateway` that is one of several.
type peerFlags struct {
	listen     string // where this one takes what the others pass on, as they reach it; "": it is alone
	secretFile string
}

// makeSecret is a command that makes a file with a secret.
const makeSecret = "(umask 077; openssl rand -hex 32 >secret.txt)"

// check rejects contradictory flags.
func (p peerFlags) check() error {
	switch {
	case p == peerFlags{}:
		return nil
	case p.listen == "":
		return fail(exitUsage, "gateway: --peer-secret-file is for --peer-listen")
	case p.secretFile == "":
		return fail(exitUsage, "gateway: several gateways know each other by a secret: --peer-secret-file secret.txt, which this makes: %s", makeSecret)
	}
	host, port, err := net.SplitHostPort(p.listen)
	if err != nil || port == "" {
		return fail(exitUsage, "--peer-listen %q: give an address and a port, such as 10.0.0.1:7420", p.listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		return fail(exitUsage, "--peer-listen %q: give the one address at which the other gateways reach this one, such as 10.0.0.1:%s", p.listen, port)
	}
	return nil
}

// longestSecret is the largest file with a secret, in bytes.
const longestSecret = 4 << 10

// open reads the secret.
func (p peerFlags) open() (*peers.Link, error) {
	if st, err := os.Stat(p.secretFile); err == nil && allRead(st) {
		return nil, fail(exitUsage, "--peer-secret-file: every user of this machine can read %s: chmod o= %s, and if one of them is not to have it, make another one", p.secretFile, shellWord(p.secretFile))
	}
	text, err := atomicfile.Read(p.secretFile, longestSecret)
	if err != nil {
		return nil, fail(exitUsage, "--peer-secret-file: %w", err)
	}
	link, err := peers.NewLink(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fail(exitUsage, "--peer-secret-file: %s: %w; this makes one: %s", p.secretFile, err, makeSecret)
	}
	return link, nil
}
