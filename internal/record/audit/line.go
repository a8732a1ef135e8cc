package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// timeLayout is UTC with three fraction digits (TP-8).
const timeLayout = "2006-01-02T15:04:05.000Z"

// logger is the proxy's name in every line (TP-8).
const logger = "mcp_proxy"

// stringLimit is the maximum length of one string attribute, in bytes; longer ones are cut.
const stringLimit = 4 << 10

// reserved are the keys of every line; attributes cannot have these names.
var reserved = map[string]bool{
	"timestamp": true, "level": true, "logger": true, "message": true, "event_type": true,
	"proxy_pid": true, "server_pid": true, "restart_count": true, "generation": true,
}

// AppendLine appends e as one line of JSON, newline included, in TP-8's order of fields. server_pid is absent when no
// server runs; proxyPID is the process id of outlive.
func AppendLine(dst []byte, e event.Event, proxyPID int) []byte {
	dst = append(dst, `{"timestamp":"`...)
	dst = e.Time.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, `","level":"`...)
	dst = append(dst, event.LevelName(e.Level)...)
	dst = append(dst, `","logger":"`+logger+`","message":`...)
	dst = appendString(dst, e.Message)
	dst = append(dst, `,"event_type":`...)
	dst = appendString(dst, string(e.Type))
	dst = append(dst, `,"proxy_pid":`...)
	dst = strconv.AppendInt(dst, int64(proxyPID), 10)
	if e.ServerPID != 0 {
		dst = append(dst, `,"server_pid":`...)
		dst = strconv.AppendInt(dst, int64(e.ServerPID), 10)
	}
	dst = append(dst, `,"restart_count":`...)
	dst = strconv.AppendInt(dst, int64(e.RestartCount), 10)
	dst = append(dst, `,"generation":`...)
	dst = strconv.AppendInt(dst, int64(e.Generation), 10)
	for _, a := range e.Attrs {
		if a.Key == "" || reserved[a.Key] || len(dst) > lineLimit {
			continue
		}
		dst = append(dst, ',')
		dst = appendString(dst, a.Key)
		dst = append(dst, ':')
		dst = appendValue(dst, a.Value.Resolve())
	}
	return append(dst, "}\n"...)
}

func appendValue(dst []byte, v slog.Value) []byte {
	switch v.Kind() {
	case slog.KindInt64:
		return strconv.AppendInt(dst, v.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(dst, v.Uint64(), 10)
	case slog.KindBool:
		return strconv.AppendBool(dst, v.Bool())
	case slog.KindDuration:
		return strconv.AppendInt(dst, v.Duration().Milliseconds(), 10)
	case slog.KindTime:
		return appendString(dst, v.Time().UTC().Format(timeLayout))
	case slog.KindString:
		return appendString(dst, v.String())
	case slog.KindFloat64, slog.KindAny:
		if err, ok := v.Any().(error); ok { // most error types have no exported fields to encode
			return appendString(dst, err.Error())
		}
		if b, err := marshal(v.Any()); err == nil && len(b) <= stringLimit {
			return append(dst, b...)
		}
	}
	return appendString(dst, fmt.Sprint(v.Any()))
}

// appendString appends s as a JSON string, cut at [stringLimit]; bytes that are not UTF-8 become U+FFFD.
func appendString(dst []byte, s string) []byte {
	if len(s) > stringLimit {
		cut := stringLimit
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + "…"
	}
	b, err := marshal(strings.ToValidUTF8(s, "\uFFFD"))
	if err != nil {
		return append(dst, `""`...) // a string can always be encoded
	}
	return append(dst, b...)
}

// marshal is json.Marshal without the escapes for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
