package config

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/files/tree"
)

// Names is when a tool's name gets its server's prefix.
type Names string

// The ways of naming tools.
const (
	NamesAlways      Names = "always"       // <prefix>_<tool>, the default
	NamesOnCollision Names = "on-collision" // only where two servers have the same name
	NamesNever       Names = "never"        // as the servers say
)

// LocalUsers is which users of this machine may use an HTTP endpoint on loopback.
type LocalUsers string

// Who may.
const (
	LocalOwn   LocalUsers = "own"   // the user the gateway runs as, and root
	LocalToken LocalUsers = "token" // who has the token that the gateway makes
	LocalAny   LocalUsers = "any"   // everybody
)

// File is a configuration, whatever it was written as. Strings are complete: ${…} is filled in, paths are absolute.
type File struct {
	Name   string // the file's name, as it was given
	Format Format // what it was recognised as

	Names  Names  // never empty
	Listen string // host:port; empty: not given
	Auth   *Auth  // who may use our HTTP endpoint; nil: LocalUsers
	TLS    *TLS   // nil: plain HTTP
	// LocalUsers is who may use our HTTP endpoint without Auth, which is then on loopback; "": LocalOwn where the system can
	// tell users apart, otherwise LocalToken.
	LocalUsers LocalUsers
	// Origins are allowed besides the endpoint's own, as scheme://host[:port], in lower case.
	Origins []string
	// Hosts are Host headers that are allowed besides loopback, as host or host:port, in lower case.
	Hosts   []string
	Limits  Limits
	Inputs  []Input
	Servers []Server // in the order of the file

	// Warnings are about what was read but has no effect, or another one than the client gives it; see [File.Render].
	Warnings []fileerror.Problem

	ListenPos     fileerror.Pos // where Listen stands; zero without it
	LocalUsersPos fileerror.Pos // where LocalUsers stands; zero without it

	source   *fileerror.Source
	problems []fileerror.Problem
}

// Auth is who may use our HTTP endpoint. At least one member is set.
type Auth struct {
	Bearer []string // tokens, any of which opens; none is empty
	OAuth  *Issuer  // nil: no JWTs
}

// Issuer is whose JWTs open our HTTP endpoint.
type Issuer struct {
	URL      string   // of the authorization server, exactly as its tokens say
	Resource string   // our own URL as clients see it: the audience that tokens must have
	Scopes   []string // every one is needed
}

// TLS is the certificate of our HTTP endpoint. Both are absolute paths of PEM files.
type TLS struct {
	Cert, Key string
	Pos       fileerror.Pos // for problems with the files
}

// Limits of our HTTP endpoint. 0: not given.
type Limits struct {
	Body        int64 // bytes of one request
	Sessions    int
	SessionIdle time.Duration
	// SessionRelease is how long a session may be unused before its processes end.
	SessionRelease time.Duration
	Processes      int // of sessions
	Connections    int
}

// Input is a value that is asked for when it is needed, as in VS Code.
type Input struct {
	ID          string
	Description string
	Password    bool     // not shown while it is typed
	Default     string   // used if nobody can be asked, or the answer is empty
	Options     []string // the only answers, if any
	Pos         fileerror.Pos

	fallback *tree.Node // Default, until it is filled in
	command  bool       // VS Code would run one of its commands
}

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // Command is started
	HTTP  Transport = "http"  // Streamable HTTP at URL
)

// Server is one MCP server. A disabled server has passed all checks of its form, but nothing is filled in for ${…}.
type Server struct {
	// Name is unique, and made of letters, digits, dot, dash and underscore.
	Name      string
	Transport Transport

	Command []string          // program and arguments; stdio only
	Env     map[string]string // besides what every child gets; stdio only
	Dir     string            // absolute; empty: where outlive runs

	URL     string            // HTTP only
	Headers map[string]string // by name as written
	Auth    *Credentials      // nil: none; HTTP only

	Disabled bool
	Prefix   string            // of its tools' names: letters, digits, dash and underscore; never empty
	Allow    []string          // globs of tools that are shown; none: all
	Deny     []string          // globs of tools that are not, even if Allow has them
	Rename   map[string]string // a tool's own name to the one that is shown, before the prefix
	// Shared is whether all sessions of the older era use one process.
	Shared bool
	// Instances is how many processes share the requests of the newer era; at least 1.
	Instances int
	// Policy are the settings in the order of Options.Keys, defaults included.
	Policy []Setting

	Pos       fileerror.Pos // of its name
	TargetPos fileerror.Pos // of its command or URL
}

// Credentials are shown to a remote server. One member is set.
type Credentials struct {
	Bearer string
	OAuth  *OAuth
}

// OAuth is what is known of us at the authorization server of a remote server; what is missing is found out or registered.
type OAuth struct {
	ClientID, ClientSecret string
	Issuer                 string // the only authorization server that is asked; empty: the one of the first login
	Scopes                 []string
	Resource               string // RFC 8707; empty: the server's URL
	CallbackPort           int    // of the redirect on loopback; 0: any
}

// Setting is one key of a server's policy, checked by its kind.
type Setting struct {
	Key    string   // name of the flag, such as max-restarts
	Values []string // as the flag takes them; several for [List] only, where none are possible, too
	Pos    fileerror.Pos
}

// Kind is what the value of a policy key looks like.
type Kind uint8

// The kinds of values.
const (
	String   Kind = iota // any text, or one of Enum
	Bool                 // true or false
	Int                  // a whole number, not negative
	Duration             // 500ms, 30s, 1h30m; not negative
	Size                 // bytes in powers of 1024: 512MiB
	List                 // texts; a single one may stand without brackets
)

// PolicyKey is one flag of `outlive run`, and the key of the same name in outlive.yaml, with _ for -.
type PolicyKey struct {
	Name  string // of the flag
	Kind  Kind
	Usage string   // one line
	Enum  []string // the only values; none: any of the kind
}

// Options are what the package is not to find out by itself. With the zero value no variable is set and nothing is asked.
type Options struct {
	// Keys are the policy keys. None: a server has no policy.
	Keys []PolicyKey
	// Lookup gives the value of an environment variable. nil: none is set.
	Lookup func(name string) (value string, set bool)
	// ReadFile reads what ${file:…} and envFile name: ordinary files of at most limit bytes. nil: [atomicfile.Read].
	ReadFile func(path string, limit int64) ([]byte, error)
	// Seen is told the text of the configuration that [Load] has read. nil: nobody.
	Seen func(text []byte)
	// Input gets the value of an input, once for each that is used by an enabled server. An empty value is replaced by
	// the input's default. nil: defaults only.
	Input func(Input) (string, error)
	// Dir is what relative paths start from. Empty: the folder of the file, made absolute.
	Dir string
	// Home is the user's folder, for ${userHome} and ~/. Empty: neither can be used.
	Home string
}

// Problem adds a mistake that was found after the file was read, such as a command that does not exist.
func (f *File) Problem(pos fileerror.Pos, hint, format string, args ...any) {
	f.problems = append(f.problems, fileerror.Problem{Pos: pos, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Err returns all that was added by [File.Problem], as [*fileerror.Problems], or nil.
func (f *File) Err() error { return f.source.Problems(f.problems) }

// Render shows a warning the way a mistake is shown.
func (f *File) Render(p fileerror.Problem) string { return f.source.Render(p) }
