package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
	"github.com/outlive-mcp/outlive/internal/files/stateversion"
	"github.com/outlive-mcp/outlive/internal/gateway/config"
	"github.com/outlive-mcp/outlive/internal/line/remote"
)

// remoteOptions returns the options for a remote server, with our identity there; nil: it is not a remote server.
func (s *settings) remoteOptions(k *sinks) *remote.Options {
	if s.remote == nil {
		return nil
	}
	c := *s.remote
	o := &remote.Options{URL: c.URL, Name: c.Name, Headers: c.Headers, OldSSE: c.OldSSE}
	if c.Auth != nil && c.Auth.Bearer != "" {
		o.Bearer = c.Auth.Bearer
		return o
	}
	for name := range c.Headers {
		if strings.EqualFold(name, "Authorization") {
			return o
		}
	}
	auth := oauthOptions(c)
	if auth.Login = s.login; s.asks {
		auth.Authorize = s.askToLogIn(k, grantPath(c.URL, auth))
	}
	o.OAuth = remote.NewOAuth(auth)
	return o
}

// oauthOptions returns the configured authorization of a server. Any server may require authorization, even without
// such configuration.
func oauthOptions(c config.Server) remote.OAuthOptions {
	o := remote.OAuthOptions{Endpoint: c.URL}
	if c.Auth != nil && c.Auth.OAuth != nil {
		a := c.Auth.OAuth
		o.ClientID, o.ClientSecret, o.Scopes, o.RedirectPort = a.ClientID, a.ClientSecret, a.Scopes, a.CallbackPort
		o.Resource, o.Issuer = a.Resource, a.Issuer
	}
	o.Store = grantFile(grantPath(c.URL, o))
	return o
}

// grantPath is the file with the grant for a server. All outlive processes of the user share it, because a refresh
// token can be used only once.
func grantPath(endpoint string, o remote.OAuthOptions) string {
	name := "server"
	if host := hostOf(endpoint); host != "" {
		name = plainName(host)
	}
	key := endpoint + "\x00" + o.ClientID
	if o.Resource != "" {
		key += "\x00" + o.Resource
	}
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(stateDir(), "oauth", name+"-"+hex.EncodeToString(sum[:6])+".json")
}

// grantFile is a file that holds one grant, readable by its owner only. It implements remote.GrantStore.
type grantFile string

// grantVersion is the version of the file. It must change whenever an older outlive would misinterpret a grant, or lose a
// part of it when it renews it. A file without a version is of version 1.
const grantVersion = 1

// grantLimit is the longest file of a grant that is read, in bytes.
const grantLimit = 1 << 20

// grantForm is the file's content.
type grantForm struct {
	Version int `json:"version"`
	remote.Grant
}

// Load implements remote.GrantStore. A grant of a newer outlive is an error, so that it is never replaced.
func (f grantFile) Load() (remote.Grant, error) {
	var g grantForm
	raw, err := atomicfile.Read(string(f), grantLimit)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return remote.Grant{}, nil // most servers require no authorization
	}
	if err != nil {
		return remote.Grant{}, err
	}
	if err := json.Unmarshal(raw, &g); err != nil {
		return remote.Grant{}, fmt.Errorf("%s: %w: remove it and log in again", string(f), err)
	}
	return g.Grant, stateversion.Check(string(f), g.Version, grantVersion)
}

// Save replaces the file atomically.
func (f grantFile) Save(g remote.Grant) error {
	raw, err := json.MarshalIndent(grantForm{grantVersion, g}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode grant: %w", err)
	}
	dir := filepath.Dir(string(f))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.WriteDurably(string(f), append(raw, '\n'))
}

// Lock implements remote.GrantStore. The lock is a file of its own, because the grant's file is replaced. It is
// released when the process ends.
func (f grantFile) Lock(ctx context.Context) (func(), error) {
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return nil, err
	}
	unlock, err := lockStart(ctx, string(f))
	if err != nil {
		return nil, fmt.Errorf("%s is held by another process: %w", string(f), err)
	}
	return unlock, nil
}

// shellWord quotes a word for pasting into a shell.
func shellWord(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\n\"'\\$`&|;<>()*?[]#~!{}") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
