package bridge

import (
	"bytes"
	"slices"
	"strings"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// reserved begins the keys of _meta that belong to the protocol. Each era has its own; a peer of the other one may refuse
// a message that has them (the Python SDK's legacy connections do).
const reserved = "io.modelcontextprotocol/"

// mapped returns a raw object with each value replaced by change's result, without the members for which that is nil;
// the same bytes if nothing differs. One pass, because a server may send any number of members.
func mapped(object []byte, change func(name string, value []byte) []byte) []byte {
	out := append(make([]byte, 0, len(object)), '{')
	differs := false
	for key, value := range jsonrpc.Members(object) {
		was := value.Of(object)
		now := was
		if name, ok := jsonrpc.Unquote(key.Of(object)); ok {
			now = change(name, was)
		}
		if differs = differs || now == nil || !bytes.Equal(now, was); now == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, object[key.Start:value.Start]...), now...)
	}
	if !differs {
		return object
	}
	return append(out, '}')
}

// prune returns a raw object without the members that drop names: the same bytes if there are none.
func prune(object []byte, drop func(name string) bool) []byte {
	return mapped(object, func(name string, value []byte) []byte {
		if drop(name) {
			return nil
		}
		return value
	})
}

// without returns a raw object without the members of these names.
func without(object []byte, names ...string) []byte {
	return prune(object, func(name string) bool { return slices.Contains(names, name) })
}

// set returns a raw object with a member, which is left as it is when that cannot be done.
func set(object, value []byte, path ...string) []byte {
	out, err := jsonrpc.Set(nil, object, value, path...)
	if err != nil {
		return object
	}
	return out
}

// member returns the raw value at path, nil for none.
func member(object []byte, path ...string) []byte {
	return jsonrpc.FindPath(object, path...).Of(object)
}

// mapMember returns a raw object with the elements of an array in it replaced by f's results. Each is one element, several with
// commas between them, or none. It returns the same bytes if f changes nothing.
func mapMember(object []byte, name string, f func(element []byte) []byte) []byte {
	array := member(object, name)
	out, changed := []byte{'['}, false
	for at := range jsonrpc.Elements(array) {
		was := at.Of(array)
		now := f(was)
		changed = changed || !bytes.Equal(now, was)
		if len(out) > 1 && len(now) > 0 {
			out = append(out, ',')
		}
		out = append(out, now...)
	}
	if !changed {
		return object
	}
	return set(object, append(out, ']'), name)
}

// withoutReserved returns raw params or a raw result without the protocol's own keys, and those named, in its _meta. The
// _meta goes with its last key.
func withoutReserved(object []byte, also ...string) []byte {
	meta := member(object, "_meta")
	if meta == nil {
		return object
	}
	left := prune(meta, func(name string) bool { return strings.HasPrefix(name, reserved) })
	left = without(left, also...)
	switch {
	case string(left) == string(meta):
		return object
	case string(left) == "{}":
		return without(object, "_meta")
	}
	return set(object, left, "_meta")
}

// withEnvelope returns raw params, nil for none, with a raw envelope's members in their _meta, before their own. It reports
// whether they were an object.
func withEnvelope(params, envelope []byte) ([]byte, bool) {
	if params == nil {
		params = []byte("{}")
	}
	if !jsonrpc.IsObject(params) {
		return params, false
	}
	params = withoutReserved(params)
	return set(params, withMembers(member(params, "_meta"), envelope), "_meta"), true
}

// withMembers returns a raw object, nil for none, with the members of another one before its own; that one has some.
func withMembers(object, first []byte) []byte {
	out := bytes.Clone(first[:len(first)-1])
	for key, value := range jsonrpc.Members(object) {
		out = append(out, ',')
		out = append(out, object[key.Start:value.End]...)
	}
	return append(out, '}')
}

// withParams returns a request with another id and other params; env was scanned from line.
func withParams(line []byte, env *jsonrpc.Envelope, id, params []byte) []byte {
	if env.Params.Present() {
		return jsonrpc.Splice(nil, line, jsonrpc.Change{At: env.ID, With: id}, jsonrpc.Change{At: env.Params, With: params})
	}
	return set(jsonrpc.Replace(nil, line, env.ID, id), params, "params")
}
