package mcp

import (
	"bytes"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// Method names a method that outlive treats in a way of its own; every other one is Other.
type Method uint8

// The methods of both eras.
const (
	Other Method = iota
	Initialize
	Discover
	Ping
	ToolsList
	ToolsCall
	PromptsList
	PromptsGet
	ResourcesList
	TemplatesList
	ResourcesRead
	Complete
	SetLevel
	Subscribe
	Unsubscribe
	Listen
	TasksGet
	TasksList
	TasksResult
	TasksUpdate
	TasksCancel
	NoteInitialized
	NoteCancelled
	NoteProgress
	NoteToolsChanged
	NotePromptsChanged
	NoteResourcesChanged
	NoteResourceUpdated
	NoteAcknowledged
	Methods // how many there are
)

var methodNames = [Methods]string{
	Initialize:           "initialize",
	Discover:             "server/discover",
	Ping:                 "ping",
	ToolsList:            "tools/list",
	ToolsCall:            "tools/call",
	PromptsList:          "prompts/list",
	PromptsGet:           "prompts/get",
	ResourcesList:        "resources/list",
	TemplatesList:        "resources/templates/list",
	ResourcesRead:        "resources/read",
	Complete:             "completion/complete",
	SetLevel:             "logging/setLevel",
	Subscribe:            "resources/subscribe",
	Unsubscribe:          "resources/unsubscribe",
	Listen:               "subscriptions/listen",
	TasksGet:             "tasks/get",
	TasksList:            "tasks/list",
	TasksResult:          "tasks/result",
	TasksUpdate:          "tasks/update",
	TasksCancel:          "tasks/cancel",
	NoteInitialized:      "notifications/initialized",
	NoteCancelled:        "notifications/cancelled",
	NoteProgress:         "notifications/progress",
	NoteToolsChanged:     "notifications/tools/list_changed",
	NotePromptsChanged:   "notifications/prompts/list_changed",
	NoteResourcesChanged: "notifications/resources/list_changed",
	NoteResourceUpdated:  "notifications/resources/updated",
	NoteAcknowledged:     "notifications/subscriptions/acknowledged",
}

// String returns the method's name on the wire; "" for Other.
func (m Method) String() string { return methodNames[m] }

// Lookup returns the method of a raw JSON string, quotes included. It does not allocate for the usual spelling.
func Lookup(raw []byte) Method {
	if len(raw) < 2 {
		return Other
	}
	if m := named(raw[1 : len(raw)-1]); m != Other {
		return m
	}
	if bytes.IndexByte(raw, '\\') >= 0 { // "tools\/list" is the same method
		name, _ := jsonrpc.Unquote(raw)
		return named([]byte(name))
	}
	return Other
}

// named looks through the whole table: it is small and lies in one piece, and on a processor that has been asleep that
// counts for more than the number of comparisons.
func named(name []byte) Method {
	for m := Other + 1; m < Methods; m++ {
		if string(name) == methodNames[m] {
			return m
		}
	}
	return Other
}

// Resendable reports whether a request may be sent again to a new process whatever the old one did with it: it reads,
// or does the same when done twice.
func (m Method) Resendable() bool {
	switch m {
	case Initialize, Discover, Ping, ToolsList, PromptsList, PromptsGet, ResourcesList, TemplatesList, ResourcesRead,
		Complete, SetLevel, Subscribe, Unsubscribe, Listen, TasksGet, TasksList, TasksResult, TasksUpdate:
		return true
	}
	return false
}

// ListenURIsMost is how many resources one subscriptions/listen can name: what is compared for each of them must have an end.
// Those beyond are left out of the acknowledgement.
const ListenURIsMost = 1000
