package main

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/outlive-mcp/outlive/internal/record/logline"
	"github.com/outlive-mcp/outlive/internal/view/hosts"
)

// tokenPrefix is how a token begins: its kind, and the version of what follows.
const tokenPrefix = "outlive1."

// token is what lets one machine into a fleet: which machine that is, its secret, and by which certificate it knows the hub.
type token struct {
	Host   string
	Secret string
	Pin    []byte // SHA-256 of the hub's certificate
}

var base64Text = base64.RawURLEncoding

func (t token) String() string {
	return tokenPrefix + base64Text.EncodeToString([]byte(t.Host)) + "." + t.Secret + "." + base64Text.EncodeToString(t.Pin)
}

func parseToken(text string) (token, error) {
	broken := wrong("--token: that is no token, or not the whole of one: outlive fleet token make NAME, on the hub, prints it as one line that begins with %s", tokenPrefix)
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	parts := strings.Split(rest, ".")
	if !ok || len(parts) != 3 || parts[1] == "" {
		return token{}, broken
	}
	name, err1 := base64Text.DecodeString(parts[0])
	pin, err2 := base64Text.DecodeString(parts[2])
	if err1 != nil || err2 != nil || len(pin) != sha256.Size || checkName(string(name)) != nil {
		return token{}, broken
	}
	return token{string(name), parts[1], pin}, nil
}

// checkName refuses what is no good name for a machine.
func checkName(name string) error {
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r)) {
			return wrong("%q: want letters, digits, dots, - and _ for the name of a machine", name)
		}
	}
	switch {
	case name == "" || len(name) > 63 || strings.ContainsRune(".-_", rune(name[0])):
		return wrong("%q: want a name of 1 to 63 characters that begins with a letter or a digit", name)
	case name == hosts.Local, name == hosts.All:
		return wrong("%q stands for something else in --hosts: give the machine another name", name)
	}
	return nil
}

// known is a token as the hub keeps it.
type known struct {
	Host    string    `json:"host"`
	Hash    string    `json:"hash"` // SHA-256 of the secret
	Made    time.Time `json:"made"`
	Machine string    `json:"machine,omitempty"` // that has used it first; no other one may
	Used    time.Time `json:"used,omitzero"`     // for the first time
	From    string    `json:"from,omitempty"`    // address of that
}

// tokenFile is all that the hub knows of the machines.
type tokenFile struct {
	Version int     `json:"version"`
	Tokens  []known `json:"tokens"`
}

// good are the hashes of the tokens, by host.
func (f *tokenFile) good() map[string]string {
	all := map[string]string{}
	for _, k := range f.Tokens {
		all[k.Host] = k.Hash
	}
	return all
}

// find is where a host's token is; -1: there is none.
func (f *tokenFile) find(host string) int {
	return slices.IndexFunc(f.Tokens, func(k known) bool { return k.Host == host })
}

func (s *settings) tokensPath() string { return filepath.Join(s.hubDir(), "tokens.json") }

// tokensRead is what was read last: many machines come at the same time when a hub is back.
type tokensRead struct {
	mu   sync.Mutex
	of   os.FileInfo
	file tokenFile
}

// tokens are those of the file, which nobody may change: who writes it replaces it.
func (s *settings) tokens() (tokenFile, error) {
	s.read.mu.Lock()
	defer s.read.mu.Unlock()
	now, err := os.Stat(s.tokensPath())
	if errors.Is(err, fs.ErrNotExist) {
		return tokenFile{}, nil
	}
	if err != nil {
		return tokenFile{}, err
	}
	if was := s.read.of; was != nil && os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) && was.Size() == now.Size() {
		return s.read.file, nil
	}
	var f tokenFile
	if _, err := readFile(s.tokensPath(), &f); err != nil {
		return tokenFile{}, err
	}
	f.Tokens = slices.DeleteFunc(f.Tokens, func(k known) bool { return k.Hash == "" }) // an older hub kept the names of those that it had revoked
	s.read.of, s.read.file = now, f
	return f, nil
}

// changeTokens reads the tokens and writes what change makes of them, one process at a time.
func (s *settings) changeTokens(change func(*tokenFile) error) error {
	unlock, err := lock(s.tokensPath() + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.tokens()
	if err != nil {
		return err
	}
	f.Version, f.Tokens = fileVersion, slices.Clone(f.Tokens)
	if err := change(&f); err != nil {
		return err
	}
	return writeFile(s.tokensPath(), f)
}

var (
	errNoToken   = errors.New("no such token")
	errOtherUser = errors.New("another machine has used this token: make a new one for this machine, or revoke the old one first if it is the same machine set up anew")
)

// make adds a token for a host, which has none that is good.
func (f *tokenFile) make(host, secret string) error {
	made := known{Host: host, Hash: hashOf(secret), Made: time.Now().UTC()}
	if f.find(host) >= 0 {
		return fmt.Errorf("%s has a token already: revoke it first (outlive fleet token revoke %s), or take another name", host, host)
	}
	f.Tokens = append(f.Tokens, made)
	return nil
}

// revoke takes a host's token away.
func (f *tokenFile) revoke(host string) error {
	at := f.find(host)
	if at < 0 {
		return fmt.Errorf("no machine %q has a token here; outlive fleet token list shows those that have", host)
	}
	f.Tokens = slices.Delete(f.Tokens, at, at+1)
	return nil
}

// check returns the token of a machine that wants to come in, or why it may not.
func (f *tokenFile) check(host, machine, secret string) (*known, error) {
	at := f.find(host)
	if at < 0 || subtle.ConstantTimeCompare([]byte(f.Tokens[at].Hash), []byte(hashOf(secret))) != 1 {
		return nil, errNoToken
	}
	if k := &f.Tokens[at]; k.Machine == "" || k.Machine == machine {
		return k, nil
	}
	return nil, errOtherUser
}

// use notes which machine has used a token first.
func (k *known) use(machine, from string) {
	k.Machine, k.Used, k.From = machine, time.Now().UTC(), from
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

func newToken(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of machines; on the hub",
		Long: `Each machine of a fleet has a token of its own, which says what the machine is called. It lets in the first machine that uses it, and
no other. The hub keeps no token, only what it needs to know one again.`,
	}
	var asJSON bool
	list := &cobra.Command{
		Use: "list", Short: "Show which machines have a token", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return s.listTokens(asJSON) },
	}
	list.Flags().BoolVar(&asJSON, "json", false, "as a JSON array")
	cmd.AddCommand(&cobra.Command{
		Use: "make NAME", Short: "Print a new token for the machine that is to be called NAME", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return s.makeToken(args[0]) },
	}, list, &cobra.Command{
		Use: "revoke NAME", Short: "Let a machine in no more, and forget what it has said", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return s.revokeToken(args[0]) },
	})
	return cmd
}

func (s *settings) makeToken(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := s.hubIsHere(); err != nil {
		return err
	}
	_, before := os.Stat(s.identityPath())
	id, _, err := s.identity()
	if err != nil {
		return err
	}
	if before != nil {
		fmt.Fprintf(os.Stderr, "No hub has run on this machine yet: the token is for one that is started here. If your hub is elsewhere, make it there, and delete %s here.\n", s.hubDir())
	}
	t := token{Host: name, Secret: rand.Text(), Pin: id.pin()}
	err = s.changeTokens(func(f *tokenFile) error { return f.make(name, t.Secret) })
	if err == nil {
		_, err = fmt.Println(t)
	}
	return err
}

// hubIsHere returns an error on a machine that has joined a hub elsewhere: a token that is made there is of a hub that nobody runs. Where there is
// neither, the first token makes a hub.
func (s *settings) hubIsHere() error {
	if _, err := os.Stat(s.identityPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var m membership
	there, err := readFile(s.memberFile(), &m)
	if err != nil {
		return err
	}
	if there {
		return fmt.Errorf("no hub is here: this machine is a member of the fleet of %s; tokens are made, listed and revoked there", m.where())
	}
	return nil
}

func (s *settings) revokeToken(name string) error {
	if err := s.hubIsHere(); err != nil {
		return err
	}
	err := s.changeTokens(func(f *tokenFile) error { return f.revoke(name) })
	if err == nil {
		_, err = fmt.Printf("%s is let in no more\n", name)
	}
	return err
}

// tokenRecord is a token for programs: without what lets somebody in.
type tokenRecord struct {
	Host string    `json:"host"`
	Made time.Time `json:"made"`
	Used time.Time `json:"used,omitzero"`
	From string    `json:"from,omitempty"`
}

func (s *settings) listTokens(asJSON bool) error {
	if err := s.hubIsHere(); err != nil {
		return err
	}
	f, err := s.tokens()
	if err != nil {
		return err
	}
	records := []tokenRecord{}
	for _, k := range f.Tokens {
		records = append(records, tokenRecord{k.Host, k.Made, k.Used, k.From})
	}
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(records)
	}
	if len(records) == 0 {
		fmt.Println("No machine has a token: outlive fleet token make NAME")
		return nil
	}
	t := tabwriter.NewWriter(logline.NewScreen(os.Stdout), 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "NAME\tMADE\tFIRST USED\tFROM")
	for _, r := range records {
		used := "never"
		if !r.Used.IsZero() {
			used = r.Used.Local().Format(time.DateTime)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Host, r.Made.Local().Format(time.DateTime), used, r.From)
	}
	return t.Flush()
}
