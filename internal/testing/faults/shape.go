package faults

// Shape is how a server is started, and what it starts.
type Shape struct {
	Name   string // as the table's heading says it
	Detail string // one clause
	// wrap stands before the server: "", "shell" or "launcher".
	wrap string
	// brood is what the server starts, by the role of each descendant.
	brood []string
	// deaf: neither the server nor its brood heeds SIGTERM, and the server does not heed the end of its stdin.
	deaf bool
}

// The roles of descendants.
const (
	roleHelper = "helper" // in the server's group, with its stdout open
	roleSetsid = "setsid" // in a session of its own
	roleDaemon = "daemon" // double-forked, in a session of its own, its parent gone
)

// Shapes are the columns of the matrix. Each server answers initialize when everything it starts runs.
func Shapes() []Shape {
	return []Shape{
		{Name: "direct", Detail: "the server and a helper in its group", brood: []string{roleHelper}},
		{Name: "sh -c", Detail: "the same behind a shell that stays", wrap: "shell", brood: []string{roleHelper}},
		{Name: "npx-like", Detail: "the same behind a launcher, behind a shell; the launcher passes no signal on", wrap: "launcher", brood: []string{roleHelper}},
		{Name: "setsid", Detail: "a grandchild in a session of its own", brood: []string{roleSetsid}},
		{Name: "daemon", Detail: "a double-forked daemon", brood: []string{roleDaemon}},
		{Name: "cleared env", Detail: "both, with an empty environment", brood: []string{roleSetsid + clearedSuffix, roleDaemon + clearedSuffix}},
		{Name: "ignores TERM", Detail: "server, helper and grandchild ignore SIGTERM, the server also the end of its stdin", brood: []string{roleHelper, roleSetsid}, deaf: true},
	}
}

// clearedSuffix makes a role's process start with an empty environment.
const clearedSuffix = "-cleared"

// Fault is what happens to a cell.
type Fault string

// The faults. After the first four outlive goes on; after the others it is gone.
const (
	ServerKilled  Fault = "server: SIGKILL"
	ServerHangs   Fault = "server: SIGSTOP"
	KeeperKilled  Fault = "keeper: SIGKILL"
	ClientLeaves  Fault = "client closes stdin"
	HangThenLeave Fault = "server: SIGSTOP, client closes stdin"
	Terminated    Fault = "supervisor: SIGTERM"
	Killed        Fault = "supervisor: SIGKILL"
	BothKilled    Fault = "supervisor and keeper: SIGKILL at once, next start"
)

// Faults are the rows of the matrix of outlive itself. ServerHangs takes a minute: only a health check notices it.
func Faults() []Fault {
	return []Fault{ServerKilled, KeeperKilled, ClientLeaves, HangThenLeave, Terminated, Killed, BothKilled, ServerHangs}
}

// PeerFaults are the rows that make sense for other supervisors too.
func PeerFaults() []Fault { return []Fault{ServerKilled, Terminated, Killed} }
