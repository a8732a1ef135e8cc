package restart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/outlive-mcp/outlive/internal/files/atomicfile"
)

const (
	// MarkerFile is the name of the file that tells of the last requested restart (RT-2).
	MarkerFile = ".mcp_restart_marker"
	// markerMethod is what RT-2 writes as the method of a restart.
	markerMethod = "sys.exit(42) → supervisor restart"
	// MarkerLimit is the largest marker file that is to be read, in bytes.
	MarkerLimit = 1 << 20
)

// Errors about a marker file. Every other error means that the file could not be read.
var (
	// ErrNoMarker: there is no such file.
	ErrNoMarker = errors.New("no restart marker")
	// ErrMarkerSchema: the file is JSON, but no restart marker.
	ErrMarkerSchema = errors.New("invalid restart marker schema")
)

// MarkerRecord is the content of the marker file (RT-2).
type MarkerRecord struct {
	Timestamp time.Time // when the restart was requested; microseconds
	Reason    string
	ExitCode  int
}

// RequestedMarker is what is written when somebody asks for a restart.
func RequestedMarker(at time.Time, reason string) MarkerRecord {
	return MarkerRecord{Timestamp: at.UTC().Truncate(time.Microsecond), Reason: reason, ExitCode: RestartExitCode}
}

// WriteMarker writes the marker file as Python's json.dumps(…, indent=2) does, byte for byte. Readers find the old
// file or the new one, never half of one.
func WriteMarker(path string, rec MarkerRecord) error {
	return atomicfile.WriteForAll(path, rec.encode())
}

func (rec MarkerRecord) encode() []byte {
	return fmt.Appendf(nil, "{\n  \"timestamp\": %s,\n  \"reason\": %s,\n  \"exit_code\": %d,\n  \"method\": %s\n}",
		pythonString(FormatTime(rec.Timestamp)), pythonString(rec.Reason), rec.ExitCode, pythonString(markerMethod))
}

// pythonString is s as Python's json.dumps writes it: in ASCII, so that the file reads the same in every locale. Invalid UTF-8
// becomes U+FFFD.
func pythonString(s string) []byte {
	out := []byte{'"'}
	for _, r := range s {
		short := strings.IndexRune("\b\f\n\r\t", r)
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case short >= 0:
			out = append(out, '\\', "bfnrt"[short])
		case r >= ' ' && r <= '~':
			out = append(out, byte(r))
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, unit)
			}
		}
	}
	return append(out, '"')
}

// ParseMarker reads the content of a marker file. It fails with [ErrMarkerSchema], or says why this is not JSON. Unknown
// fields are ignored, and so is the method, which may be missing.
func ParseMarker(raw []byte) (MarkerRecord, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		if json.Valid(raw) {
			return MarkerRecord{}, fmt.Errorf("%w: not an object", ErrMarkerSchema)
		}
		return MarkerRecord{}, err
	}
	for _, name := range requiredFields {
		if _, ok := fields[name]; !ok {
			return MarkerRecord{}, fmt.Errorf("%w: %q is missing", ErrMarkerSchema, name)
		}
	}
	code, ok := wholeNumber(fields["exit_code"])
	if !ok {
		return MarkerRecord{}, fmt.Errorf("%w: exit_code is %s", ErrMarkerSchema, fields["exit_code"])
	}
	var stamp string
	if err := json.Unmarshal(fields["timestamp"], &stamp); err != nil {
		return MarkerRecord{}, fmt.Errorf("%w: timestamp is %s", ErrMarkerSchema, fields["timestamp"])
	}
	at, err := ParseTime(stamp)
	if err != nil {
		return MarkerRecord{}, fmt.Errorf("timestamp: %w", err)
	}
	return MarkerRecord{Timestamp: at, Reason: text(fields["reason"]), ExitCode: code}, nil
}

// requiredFields are the fields without which a marker is none (RT-5).
var requiredFields = [...]string{"timestamp", "reason", "exit_code"}

// wholeNumber reads 42 and also 42.0, which Python takes for the same.
func wholeNumber(raw json.RawMessage) (int, bool) {
	var f float64
	if bytes.Equal(bytes.TrimSpace(raw), []byte("null")) || json.Unmarshal(raw, &f) != nil {
		return 0, false
	}
	return int(f), f == math.Trunc(f) && math.Abs(f) <= math.MaxUint32
}

// text is a field's string, or its JSON if it is something else: it is only shown to people.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}
