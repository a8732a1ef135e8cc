package logline

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/event"
)

// timeLayout is UTC, always six fraction digits (WD-14), so that every parser of WD-16 matches every line.
const timeLayout = "2006-01-02T15:04:05.000000Z"

// appendText appends "[time] [TAG] text\n" (WD-14). Control characters in the text are escaped, so that the output of
// a server or a client can neither forge a line nor control a terminal.
func appendText(dst []byte, at time.Time, l line) []byte {
	dst = append(dst, '[')
	dst = at.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, "] ["...)
	dst = append(dst, l.tag...)
	dst = append(dst, "] "...)
	dst = appendPrintable(dst, l.text)
	return append(dst, '\n')
}

// appendJSON appends one object and a newline.
func appendJSON(dst []byte, e event.Event, l line) []byte {
	dst = append(dst, `{"time":"`...)
	dst = e.Time.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, `","level":"`...)
	dst = append(dst, e.Level.String()...)
	dst = append(dst, `","tag":"`...)
	dst = append(dst, l.tag...)
	dst = append(dst, `","msg":`...)
	dst = appendValue(dst, l.text)
	dst = append(dst, `,"event":`...)
	dst = appendValue(dst, string(e.Type))
	dst = append(dst, `,"generation":`...)
	dst = strconv.AppendInt(dst, int64(e.Generation), 10)
	dst = append(dst, `,"restart_count":`...)
	dst = strconv.AppendInt(dst, int64(e.RestartCount), 10)
	if e.ServerPID != 0 {
		dst = append(dst, `,"server_pid":`...)
		dst = strconv.AppendInt(dst, int64(e.ServerPID), 10)
	}
	for _, a := range e.Attrs {
		switch a.Key {
		case "", "time", "level", "tag", "msg", "event", "generation", "restart_count", "server_pid":
			continue
		}
		dst = append(dst, ',')
		dst = appendValue(dst, a.Key)
		dst = append(dst, ':')
		dst = appendValue(dst, plain(a.Value.Resolve()))
	}
	return append(dst, "}\n"...)
}

// plain converts a value for JSON.
func plain(v slog.Value) any {
	switch v.Kind() {
	case slog.KindDuration:
		return v.Duration().Milliseconds()
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return err.Error()
		}
	}
	return v.Any()
}

func appendValue(dst []byte, v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return appendValue(dst, fmt.Sprint(v))
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}
