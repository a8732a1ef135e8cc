package config

import (
	"fmt"
	"time"

	"github.com/outlive-mcp/outlive/internal/files/fileerror"
	"github.com/outlive-mcp/outlive/internal/gateway/catalog"
)

// Sessions says where the sessions of HTTP clients are kept.
type Sessions string

// The values of Sessions.
const (
	SessionsOnDisk   Sessions = "disk"   // they go on with the next gateway at the address
	SessionsInMemory Sessions = "memory" // they end with the gateway
	SessionsInFleet  Sessions = "fleet"  // the other ones of several gateways go on with them
)

// LocalUsers says which users of this machine may use an HTTP endpoint on loopback.
type LocalUsers string

// The values of LocalUsers.
const (
	LocalOwn   LocalUsers = "own"   // the user the gateway runs as, and root
	LocalToken LocalUsers = "token" // users with the token that the gateway makes
	LocalAny   LocalUsers = "any"   // every user
)

// File is a configuration, whatever its format was. Values are complete: ${…} references are replaced, paths are
// absolute.
type File struct {
	Name   string // the file's name, as it was given
	Format Format // the recognised format

	Names  catalog.Names // never empty
	Listen string        // host:port; empty: not given
	Auth   *Auth         // who may use our HTTP endpoint, besides the clients of Views; nil: LocalUsers decides
	TLS    *TLS          // nil: plain HTTP
	// LocalUsers says who may use our HTTP endpoint when Auth is nil; it is then on loopback. "": LocalOwn where the
	// system can tell users apart, otherwise LocalToken.
	LocalUsers LocalUsers
	Sessions   Sessions // where those of HTTP clients are kept; "": SessionsOnDisk
	// Origins are allowed besides the endpoint's own, as scheme://host[:port], in lower case.
	Origins []string
	// Hosts are Host headers that are allowed besides loopback, as host or host:port, in lower case.
	Hosts   []string
	Limits  Limits
	Servers []Server // in the order of the file
	Views   []View   // in the order of the file

	// Warnings are about content that has no effect, or another effect than in the client; see [File.Render].
	Warnings []fileerror.Problem

	LocalUsersPos fileerror.Pos // position of LocalUsers; zero if not given

	source   *fileerror.Source
	problems []fileerror.Problem
}

// Auth says who may use our HTTP endpoint and sees everything. No member is set if only Views have tokens.
type Auth struct {
	Bearer []string // accepted tokens; none is empty
	OAuth  *Issuer  // nil: no JWTs are accepted
}

// Issuer is the authorization server whose JWTs our HTTP endpoint accepts.
type Issuer struct {
	URL      string   // the authorization server's, exactly as its tokens have it
	Resource string   // our own URL as clients see it: the audience that tokens must have
	Scopes   []string // a token needs every one
}

// View is a part of the servers and their tools, for some clients. Whoever is in none sees everything.
type View struct {
	// Name is unique, and made of letters, digits, dot, dash and underscore.
	Name     string
	Servers  []ViewServer // in the order of the file; at least one
	Bearer   []string     // tokens that see this view only; none is empty
	Subjects []string     // globs of JWT subjects that see this view only
	NoTools  bool         // without the gateway's own tools
}

// ViewServer is what a view has of a server, besides what the server's own Allow and Deny say.
type ViewServer struct {
	Name        string
	Allow, Deny []string // see Server
}

// TLS is the certificate of our HTTP endpoint: absolute paths of two PEM files.
type TLS struct {
	Cert, Key string
	Pos       fileerror.Pos // for problems with the files
}

// Limits of our HTTP endpoint. 0: not given.
type Limits struct {
	Body        int64 // maximum size of a request in bytes
	Sessions    int
	SessionIdle time.Duration
	// SessionRelease is how long a session may be unused before its processes are ended.
	SessionRelease time.Duration
	Processes      int // of all sessions together
	Connections    int
}

// Transport is how a server is reached.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // Command is started
	HTTP  Transport = "http"  // URL: Streamable HTTP, or the HTTP+SSE before it
)

// Server is one MCP server. A disabled server's form is checked, but its ${…} references are not replaced.
type Server struct {
	// Name is unique, and made of letters, digits, dot, dash and underscore.
	Name      string
	Transport Transport

	Command []string          // program and arguments; stdio only
	Env     map[string]string // in addition to what every child process gets; stdio only
	Dir     string            // absolute; empty: outlive's working directory

	URL     string            // HTTP only
	OldSSE  bool              // nothing but the HTTP+SSE of 2024-11-05 is spoken there; HTTP only
	Headers map[string]string // by name, with the file's upper and lower case
	Auth    *Credentials      // nil: none; HTTP only

	Disabled bool
	Prefix   string            // for tool names: letters, digits, dash and underscore; never empty
	Allow    []string          // globs of the tools that are shown; none: all
	Deny     []string          // globs of tools that are hidden, even if Allow matches
	Rename   map[string]string // from a tool's own name to the one shown, before the prefix
	// Shared says that all sessions of the older era use one process.
	Shared bool
	// Instances is how many processes share the requests of the newer era; at least 1.
	Instances int
	// Policy are the settings in the order of Options.Keys, defaults included.
	Policy []Setting

	Pos       fileerror.Pos // position of its name
	TargetPos fileerror.Pos // position of its command or URL
}

// Credentials authenticate us to a remote server. Exactly one member is set.
type Credentials struct {
	Bearer string
	OAuth  *OAuth
}

// OAuth is our registration at a remote server's authorization server. Missing values are discovered, or obtained by
// registering.
type OAuth struct {
	ClientID, ClientSecret string
	Issuer                 string // the only authorization server to use; empty: the one of the first login
	Scopes                 []string
	Resource               string // RFC 8707; empty: the server's URL
	CallbackPort           int    // port of the loopback redirect; 0: any
}

// Setting is one key of a server's policy, checked by its kind.
type Setting struct {
	Key    string   // name of the flag, such as max-restarts
	Values []string // as the flag takes them; only a [List] has several, or none
	Pos    fileerror.Pos
}

// Kind is the type of a policy key's value.
type Kind uint8

// The kinds of values.
const (
	String   Kind = iota // any text, or one of Enum
	Bool                 // true or false
	Int                  // a whole number, not negative
	Duration             // 500ms, 30s, 1h30m; not negative
	Size                 // bytes in powers of 1024: 512MiB
	List                 // texts; a single one may be given without brackets
)

// PolicyKey is one flag of `outlive run`, and the key of the same name in outlive.yaml, with _ for -.
type PolicyKey struct {
	Name  string // of the flag
	Kind  Kind
	Usage string   // one line
	Enum  []string // the only valid values; none: any of the kind
}

// Options are what the package does not find out by itself. With the zero value no environment variable is set.
type Options struct {
	// Keys are the policy keys. None: a server has no policy.
	Keys []PolicyKey
	// Lookup returns the value of an environment variable. nil: none is set.
	Lookup func(name string) (value string, set bool)
	// ReadFile reads the files of ${file:…} and envFile: regular files of at most limit bytes. nil:
	// [atomicfile.Read].
	ReadFile func(path string, limit int64) ([]byte, error)
	// Seen is called with the text that [Load] has read. nil: not called.
	Seen func(text []byte)
	// Dir is the base of relative paths. Empty: the folder of the file, made absolute.
	Dir string
	// Home is the user's home folder, for ${userHome} and ~/. Empty: neither can be used.
	Home string
}

// Problem adds a mistake that was found after the file was read, for example a command that does not exist.
func (f *File) Problem(pos fileerror.Pos, hint, format string, args ...any) {
	f.problems = append(f.problems, fileerror.Problem{Pos: pos, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Err returns the mistakes added by [File.Problem], as [*fileerror.Problems], or nil.
func (f *File) Err() error { return f.source.Problems(f.problems) }

// Render formats a warning like a mistake: with its line and a caret.
func (f *File) Render(p fileerror.Problem) string { return f.source.Render(p) }
