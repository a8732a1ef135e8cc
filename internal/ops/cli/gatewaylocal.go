package cli

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/peer"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/gateway/streamhttp"
)

// admitLocal sets which users of this machine may use an endpoint without auth: a client gets the servers' rights,
// with the files and logins of the user they run as. tokenFile is the file with the required token, "" if none is
// required.
func admitLocal(o *streamhttp.Options, file *config.File, name string) (tokenFile string, err error) {
	users := file.LocalUsers
	if users == "" {
		users = config.LocalToken
		if peer.TellsTCP() {
			users = config.LocalOwn
		}
	}
	switch users {
	case config.LocalOwn:
		if !peer.TellsTCP() {
			file.Problem(file.LocalUsersPos, "write token, or any", "this system does not say which user a connection belongs to")
			return "", fail(exitUsage, "%w", file.Err())
		}
		o.Peer = ownUserOnly
	case config.LocalToken:
		tokenFile = filepath.Join(stateDir(), "gateway", name+".token")
		token, err := localToken(tokenFile)
		if err != nil {
			return "", fail(exitFailure, "token for local clients: %w", err)
		}
		o.Bearer = []string{token}
	}
	return tokenFile, nil
}

// ownUserOnly admits this user and root.
func ownUserOnly(local, remote net.Addr) error {
	here, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return err
	}
	there, err := netip.ParseAddrPort(remote.String())
	if err != nil {
		return err
	}
	return ownUser(peer.TCP(here, there))
}

// ownUser returns an error for a connection of another user, or of one that the system cannot identify.
func ownUser(uid int, err error) error {
	whose := fmt.Sprintf("this connection is of user %d", uid)
	switch {
	case err != nil:
		whose = err.Error()
	case peer.OursOrRoots(uid):
		return nil
	}
	return fmt.Errorf("only user %d and root may use this gateway, and %s. For other users, and for a reverse proxy that runs as one, "+
		"set auth in its configuration (a token for each client) or local_users: any", os.Getuid(), whose)
}

// tokenText is the form of the tokens that [localToken] makes.
const tokenText = `^[A-Z2-7]{26}\n?$`

// localToken returns the token in a file that only this user can read, and creates both if necessary. A gateway that
// starts again has the same token, because clients have it in their configuration.
func localToken(path string) (string, error) {
	text, err := atomicfile.Read(path, 64)
	switch {
	case err == nil && regexp.MustCompile(tokenText).Match(text):
		return strings.TrimSpace(string(text)), os.Chmod(path, 0o600)
	case err == nil:
		return "", fmt.Errorf("%s holds something else: remove it", path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	token := rand.Text()
	return token, atomicfile.WriteDurably(path, []byte(token+"\n"))
}

// mostTokens is the largest file with tokens, in bytes.
const mostTokens = 64 << 10

// readTokens reads the tokens that clients may send: one in each line, besides empty lines and those that begin with #.
func readTokens(path string) (*config.Auth, error) {
	text, err := atomicfile.Read(path, mostTokens)
	if err != nil {
		return nil, fail(exitUsage, "--token-file: %w", err)
	}
	auth := &config.Auth{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := config.CheckToken(line); err != nil {
			return nil, fail(exitUsage, "--token-file: line %d of %s %w", i+1, path, err)
		}
		auth.Bearer = append(auth.Bearer, line)
	}
	if len(auth.Bearer) == 0 {
		return nil, fail(exitUsage, "--token-file: %s has no token: write one into it, such as that of openssl rand -hex 32", path)
	}
	return auth, nil
}
