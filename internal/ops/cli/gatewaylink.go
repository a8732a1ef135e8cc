package cli

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/gateway/replica"
)

// linkFlags are those of `outlive gateway` for replicas and a core on several machines.
type linkFlags struct {
	listen     string // where the core takes replicas
	at         string // where the core of a replica is, or several cores, with commas
	secretFile string
}

func (l linkFlags) used() bool { return l.listen != "" || l.at != "" }

// makeSecret is a command that makes a file with a secret.
const makeSecret = "(umask 077; openssl rand -hex 32 >secret.txt)"

// check rejects contradictory flags.
func (l linkFlags) check(f *gatewayFlags, idle bool) error {
	switch {
	case l.listen != "" && !f.core:
		return fail(exitUsage, "gateway: --core-listen is for --core: a replica finds the core with --core-at %s", l.listen)
	case l.at != "" && !f.replica:
		return fail(exitUsage, "gateway: --core-at is for --replica: a core takes replicas of other machines with --core-listen ADDRESS")
	case !l.used() && l.secretFile != "":
		return fail(exitUsage, "gateway: --core-secret-file is for --core-listen and --core-at")
	case !l.used():
		return nil
	case idle:
		return fail(exitUsage, "gateway: --core-idle is for a core that replicas start; one of several machines is started and ended by hand, or as a service")
	case l.secretFile == "":
		return fail(exitUsage, "gateway: core and replicas of several machines know each other by a secret: --core-secret-file secret.txt, which this makes: %s", makeSecret)
	}
	if l.listen != "" {
		return checkCore("core-listen", l.listen)
	}
	for _, address := range l.cores() {
		if err := checkCore("core-at", address); err != nil {
			return err
		}
	}
	return nil
}

func (l linkFlags) cores() []string { return strings.Split(l.at, ",") }

func checkCore(flag, address string) error {
	if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
		return fail(exitUsage, "--%s %q: give an address and a port, such as 10.0.0.1:7420", flag, address)
	}
	return nil
}

// longestSecret is the largest file with a secret, in bytes.
const longestSecret = 4 << 10

// open reads the secret.
func (l linkFlags) open() (*replica.Link, error) {
	text, err := atomicfile.Read(l.secretFile, longestSecret)
	if err != nil {
		return nil, fail(exitUsage, "--core-secret-file: %w", err)
	}
	st, err := os.Stat(l.secretFile)
	if err != nil {
		return nil, fail(exitUsage, "--core-secret-file: %w", err)
	}
	if allRead(st) {
		return nil, fail(exitUsage, "--core-secret-file: every user of this machine can read %s: chmod o= %s, and if one of them is not to have it, make another one", l.secretFile, shellWord(l.secretFile))
	}
	link, err := replica.NewLink(strings.TrimSpace(string(text)))
	if err != nil {
		return nil, fail(exitUsage, "--core-secret-file: %s: %w; this makes one: %s", l.secretFile, err, makeSecret)
	}
	return link, nil
}

// secretHint says what to do about another secret.
func secretHint(why error) string {
	if replica.AnotherSecret(why) {
		return ": give core and replicas files with the same one (--core-secret-file)"
	}
	return ""
}

// linkListener accepts connections of replicas on other machines.
type linkListener struct {
	socketListener
	link *replica.Listener
}

func (l linkListener) Accept() (net.Conn, error) {
	conn, err := l.socketListener.Accept()
	if err != nil {
		return nil, err
	}
	return l.link.Accepted(conn.(*net.TCPConn)), nil
}

// farPatience is how long a request waits for the core of another machine when that cannot be reached. standbyPatience is that for several
// cores: longer than it takes until another one has the sessions, and shorter than clients wait.
const (
	farPatience     = daemonPatience
	standbyPatience = 30 * time.Second
)

// farCore is the core of a replica, at another machine, or one of several.
type farCore struct {
	flags linkFlags

	mu        sync.Mutex
	link      *replica.Link
	addresses []string // the one that was reached last is the first
}

func openFarCore(flags linkFlags) (*farCore, error) {
	link, err := flags.open()
	return &farCore{flags: flags, link: link, addresses: flags.cores()}, err
}

func (c *farCore) patience() time.Duration {
	if len(c.addresses) > 1 {
		return standbyPatience
	}
	return farPatience
}

// reached has a core tried first from now on.
func (c *farCore) reached(at string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := slices.Index(c.addresses, at); n > 0 {
		c.addresses = slices.Concat([]string{at}, c.addresses[:n], c.addresses[n+1:])
	}
}

// dial connects to the core. A secret that is not the core's is read again for the next attempt: its file may have been mended.
func (c *farCore) dial(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	link, addresses := c.link, c.addresses
	c.mu.Unlock()
	conn, at, err := link.DialAny(ctx, addresses)
	if err == nil {
		c.reached(at)
	}
	if !replica.AnotherSecret(err) {
		return conn, err
	}
	if link, again := c.flags.open(); again == nil {
		c.mu.Lock()
		c.link = link
		c.mu.Unlock()
	}
	return nil, fmt.Errorf("%w%s", err, secretHint(err))
}
