package mcp

import (
	"bytes"
	"strconv"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// InitializeLine is the handshake for a new process: what the client once sent, with the version both sides settled
// on. A server that supports that version must answer with it.
func InitializeLine(id, params []byte, version string) []byte {
	if version != "" {
		quoted := jsonrpc.AppendQuoted(nil, version)
		if p, err := jsonrpc.Set(nil, params, quoted, "protocolVersion"); err == nil {
			params = p
		}
	}
	return jsonrpc.AppendRequest(nil, id, Initialize.String(), params)
}

// InitializedLine ends the handshake.
func InitializedLine() []byte {
	return jsonrpc.AppendNotification(nil, NoteInitialized.String(), nil)
}

// ListLine asks for one page of a list; cursor is a raw JSON string or nil, meta the modern era's _meta or nil.
func ListLine(id []byte, l List, cursor, meta []byte) []byte {
	params := []byte("{}")
	if cursor != nil {
		params, _ = jsonrpc.Set(nil, params, cursor, "cursor")
	}
	if meta != nil {
		params, _ = jsonrpc.Set(nil, params, meta, "_meta")
	}
	return jsonrpc.AppendRequest(nil, id, l.Method().String(), params)
}

// DiscoverLine asks a modern server what it is.
func DiscoverLine(id, meta []byte) []byte {
	params, _ := jsonrpc.Set(nil, []byte("{}"), meta, "_meta")
	return jsonrpc.AppendRequest(nil, id, Discover.String(), params)
}

// CallLine calls a tool; arguments is a raw JSON object, meta the modern era's _meta or nil.
func CallLine(id []byte, tool string, arguments, meta []byte) []byte {
	params := append(jsonrpc.AppendQuoted([]byte(`{"name":`), tool), `,"arguments":`...)
	params = append(append(params, arguments...), '}')
	if meta != nil {
		params, _ = jsonrpc.Set(nil, params, meta, "_meta")
	}
	return jsonrpc.AppendRequest(nil, id, ToolsCall.String(), params)
}

// CancelledLine tells the receiver of a request that nobody waits for its answer any more.
func CancelledLine(requestID []byte, reason string) []byte {
	params := append([]byte(`{"requestId":`), requestID...)
	params = append(params, `,"reason":`...)
	params = append(jsonrpc.AppendQuoted(params, reason), '}')
	return jsonrpc.AppendNotification(nil, NoteCancelled.String(), params)
}

// ProgressLine reports progress for a raw progress token up to a raw value; message may be empty.
func ProgressLine(token, value []byte, message string) []byte {
	params := append([]byte(`{"progressToken":`), token...)
	params = append(append(params, `,"progress":`...), value...)
	if message != "" {
		params = jsonrpc.AppendQuoted(append(params, `,"message":`...), message)
	}
	return jsonrpc.AppendNotification(nil, NoteProgress.String(), append(params, '}'))
}

// UpdatedLine tells a client that a resource with this raw URI may have changed; subscription is as for [ChangedLine].
func UpdatedLine(uri, subscription []byte) []byte {
	params := append([]byte(`{"uri":`), uri...)
	if subscription != nil {
		params = append(append(append(params, `,"_meta":{"`+MetaSubscriptionID+`":`...), subscription...), '}')
	}
	return jsonrpc.AppendNotification(nil, NoteResourceUpdated.String(), append(params, '}'))
}

// LogLine is a log message of outlive's own for a client of the legacy era, at one of LogLevels.
func LogLine(level, text string) []byte {
	params := jsonrpc.AppendQuoted([]byte(`{"level":`), level)
	params = jsonrpc.AppendQuoted(append(params, `,"logger":"outlive","data":`...), text)
	return jsonrpc.AppendNotification(nil, "notifications/message", append(params, '}'))
}

// ChangedLine tells a client that a list is another one now; subscription is the raw id of the listen request it
// belongs to, nil in the legacy era.
func ChangedLine(l List, subscription []byte) []byte {
	if subscription == nil {
		return jsonrpc.AppendNotification(nil, l.Changed().String(), nil)
	}
	params := append([]byte(`{"_meta":{"`+MetaSubscriptionID+`":`), subscription...)
	return jsonrpc.AppendNotification(nil, l.Changed().String(), append(params, "}}"...))
}

// ListenFilter is the raw filter of a subscriptions/listen about these lists, and resources with these raw URIs.
func ListenFilter(lists func(List) bool, uris [][]byte) []byte {
	filter := []byte("{}")
	for _, l := range Announced {
		if lists(l) {
			filter, _ = jsonrpc.Set(nil, filter, []byte("true"), l.filter()) // an object
		}
	}
	if len(uris) > 0 {
		filter, _ = jsonrpc.Set(nil, filter, jsonrpc.AppendElements(nil, []byte("[]"), uris...), "resourceSubscriptions")
	}
	return filter
}

// AcknowledgedLine tells a client what its subscriptions/listen with this raw id covers, as a raw filter.
func AcknowledgedLine(id, filter []byte) []byte {
	params := append([]byte(`{"_meta":{"`+MetaSubscriptionID+`":`), id...)
	params = append(append(append(params, `},"notifications":`...), filter...), '}')
	return jsonrpc.AppendNotification(nil, NoteAcknowledged.String(), params)
}

// ListenEndedLines tell a client that its subscriptions/listen with this raw id has ended: why, and the request's answer.
func ListenEndedLines(id []byte, why string) (cancelled, answer []byte) {
	result := append([]byte(`{"resultType":"complete","_meta":{"`+MetaSubscriptionID+`":`), id...)
	return CancelledLine(id, why), jsonrpc.AppendResult(nil, id, append(result, "}}"...))
}

// LessIsCovered is why a stream ends of which a new process does not grant all that the one before has granted.
const LessIsCovered = "the restarted server does not offer all of this subscription"

// OutcomeUnknown tells the model that a call may have been carried out.
const OutcomeUnknown = "The call may or may not have taken effect and was NOT repeated. Check the state before calling it again."

// ToolText is a tools/call result with one text; modern results say that they are complete.
func ToolText(text string, isError bool, era Era, meta []byte) []byte {
	out := []byte(`{`)
	if era == Modern {
		out = append(out, `"resultType":"complete",`...)
	}
	out = append(out, `"content":[{"type":"text","text":`...)
	out = jsonrpc.AppendQuoted(out, text)
	out = append(out, `}],"isError":`...)
	out = strconv.AppendBool(out, isError)
	if meta != nil {
		out = append(append(out, `,"_meta":`...), meta...)
	}
	return append(out, '}')
}

// AdvertiseListChanged returns a raw InitializeResult or DiscoverResult in which every list that the server has, and
// tools in any case if withTools, is shown with listChanged: behind outlive a list can always change, by a restart.
func AdvertiseListChanged(result []byte, withTools bool) []byte {
	for _, name := range []string{"tools", "prompts", "resources"} {
		has := jsonrpc.FindPath(result, "capabilities", name).Present()
		if !has && (name != "tools" || !withTools) {
			continue
		}
		if bytes.Equal(jsonrpc.FindPath(result, "capabilities", name, "listChanged").Of(result), []byte("true")) {
			continue
		}
		if out, err := jsonrpc.Set(nil, result, []byte("true"), "capabilities", name, "listChanged"); err == nil {
			result = out
		}
	}
	return result
}
