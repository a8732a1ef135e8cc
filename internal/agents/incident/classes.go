package incident

import (
	"cmp"
	"strings"
)

// class is what is said of a class of trouble, and when.
type class struct {
	is       string   // what the agent does, for people: it follows a name
	severity Severity // "": critical
	server   bool     // it is of an MCP server, not of an agent
	// told is what the agent itself is told. It is a fixed text: an agent must not take the output of a tool, a model or a file
	// for its user's words. "": it learns no more than that something is wrong.
	told string
	// todo is what the reader of a message should do. It does not mention buttons, which may be missing. Commands stand in
	// brackets, so that they can be copied and typed: NAME is the agent's, SERVER the server's.
	todo  string
	piped string // the same where the agent is known to have no terminal, if it differs
}

// classes are the classes of trouble. Critical are those in which an agent has stopped and cannot go on without a human. The
// last ones are PIV's, which only its own template shows.
var classes = map[string]class{
	"crashed":                 {is: "has crashed", told: "its process has ended", todo: "find out why it has ended (outlive agent logs NAME), then start it again"},
	"exited_unfinished":       {is: "has ended with its work undone", told: "its process has ended before the work was done", todo: "look at what it left undone, then start it again, or leave it"},
	"startup_blocked":         {is: "is stuck while starting", severity: Warning, told: "it does not come up", todo: "look at its terminal: most often a dialog waits there", piped: "see what it has written; it has no terminal, so that a dialog would wait in vain"},
	"stopped":                 {is: "has a stopped process", told: "its process was stopped", todo: "let it go on, or end it"},
	"waiting_question":        {is: "waits for an answer", severity: Warning, told: "it waits for an answer", todo: "answer HOW"},
	"waiting_other":           {is: "waits for you at its terminal", severity: Warning, told: "it waits for a human", todo: "answer the dialog at its terminal", piped: "give it what it lacks, then start it again; it has no terminal to answer at"},
	"human_required":          {is: "needs you", told: "it has met a failure that needs a human", todo: "supply what it lacks, then start it again"},
	"auth_expired":            {is: "is logged out", told: "its login has expired", todo: "log in again where it runs, then start it again; until then nothing is started"},
	"credit_exhausted":        {is: "has no credit left", todo: "add credit to the account, then start it again; until then nothing is started"},
	"rate_limited":            {is: "is rate limited", severity: Warning, told: "a usage limit is reached", todo: "nothing, if it may wait; it goes on by itself when the limit is lifted"},
	"api_backoff":             {is: "gets errors from its model's service", severity: Warning, told: "its model answers with errors", todo: "nothing at once; see whether the model's service is up"},
	"api_failed":              {is: "cannot reach its model", severity: Warning, todo: "see whether the network and the model's service are up, then resume it"},
	"context_exhausted":       {is: "is out of context", severity: Warning, told: "its conversation has become too long", todo: "start a fresh session, with what the old one has found out"},
	"execution_error":         {is: "has an error", told: "its turn has ended with an error", todo: "read the error, fix its cause, then start it again"},
	"model_silent":            {is: "gets no answer from its model", told: "its model does not answer", todo: "look at its session; if it hangs, start it again"},
	"tool_hung":               {is: "hangs in a tool", told: "a tool does not come to an end", todo: "look at what the tool waits for; end it, or start the agent again"},
	"server_hung":             {is: "waits for an MCP server that hangs", told: "an MCP server does not answer", todo: "see what its MCP server does (outlive status); restart that, or the agent"},
	"waiting_server":          {is: "waits for an MCP server that you must mend", severity: Warning, told: "an MCP server cannot be used", todo: "mend its MCP server (outlive status); it goes on by itself then"},
	"server_paused":           {is: "is paused after too many crashes", severity: Warning, server: true, todo: "see why it ends (outlive logs SERVER), then restart it (outlive restart SERVER)"},
	"server_failed":           {is: "cannot be started", severity: Warning, server: true, todo: "see why it does not start (outlive logs SERVER), then restart it (outlive restart SERVER)"},
	"server_login":            {is: "wants a login", severity: Warning, server: true, todo: "log in where it runs (outlive status); it goes on by itself then"},
	"machine_gone":            {is: "is gone from the fleet", todo: "start its member again on that machine (outlive fleet join); what runs there goes on without it"},
	"machine_cut_off":         {is: "is cut off from the fleet, or off", todo: "see whether that machine is on and reaches the hub; what runs there goes on, and joins again by itself"},
	"machine_silent":          {is: "is silent in the fleet", todo: "see whether that machine is on, reaches the hub, and runs its member (outlive fleet join)"},
	"shared_cause":            {is: "stops agents of the fleet", todo: "see whether the service is up, and whether the account has a limit or no credit left; the agents go on by themselves, or say what they lack"},
	"background_task_dead":    {is: "waits for a background task that is dead", told: "the background task that it waits for is dead, and it is not notified of that", todo: "ask it in its session to go on without the task, or start the agent again"},
	"loop":                    {is: "repeats itself", severity: Warning, told: "it does the same again and again", todo: "look at its session, and tell it another way"},
	"no_progress":             {is: "makes no progress", severity: Warning, told: "it makes no progress", todo: "nothing, if it may take its time; else look at its session"},
	"heartbeat_lost":          {is: "shows no sign of life", told: "it gives no sign of life", todo: "see whether it still works; if not, start it again"},
	"budget_exceeded":         {is: "is over its budget", told: "it has used up its budget", todo: "decide whether it may go on: raise max_cost_usd, or stop it"},
	"orphaned":                {is: "goes on without its terminal", severity: Warning, told: "what has started it is gone", todo: "see whether it still works; if not, start it again"},
	"unreadable":              {is: "has an entry that cannot be read", todo: "correct its entry in the registry"},
	"vanished":                {is: "has vanished from the registry", todo: "put its entry back, or end it; it may still run"},
	"unsure":                  {is: "cannot be told from another process", todo: "see which process is the agent's; nothing is ended or started until that is clear"},
	"manifest":                {is: "has a manifest that cannot be read", todo: "correct the manifest, or remove it"},
	"contradiction":           {is: "shows signs that contradict each other", todo: "see whether it runs; nothing is ended or started until that is clear"},
	"no_evidence":             {is: "shows nothing at all", todo: "see whether it runs, and what of it is watched (outlive agent show NAME)"},
	"waiting_permission":      {is: "waits for a permission", severity: Warning, told: "it waits for a permission", todo: "allow or deny it, here if there are buttons for that, or at its terminal", piped: "allow or deny it, here if there are buttons for that; it has no terminal"},
	Mass:                      {is: "fail together"},
	"orchestrator_crashed":    {is: "has crashed"},
	"session_hung":            {is: "hangs"},
	"agent_waiting_for_input": {is: "waits for a human"},
	"monitor_blind":           {is: "cannot be judged"},
}

// Words describes a class for people, to follow an agent's name, as in "has crashed".
func Words(class string) string {
	return cmp.Or(classes[class].is, restWords[class], strings.ReplaceAll(class, "_", " "))
}

// Told describes a class to the agent itself, which is always a fixed text.
func Told(class string) string { return cmp.Or(classes[class].told, "something is wrong with it") }

// SeverityOf is the default severity of a class.
func SeverityOf(class string) Severity { return cmp.Or(classes[class].severity, Critical) }

// AboutServer reports whether incidents of a class are about an MCP server, not about an agent. The Agent of such an incident
// names the server and who uses it.
func AboutServer(class string) bool { return classes[class].server }
