package restart

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var at = time.Date(2026, 1, 13, 22, 30, 0, 123456000, time.UTC)

func TestWriteMarkerIsByteForByteThePythonFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), MarkerFile)
	rec := MarkerRecord{Timestamp: at, Reason: "tab\t \"quoted\" \\ é 🚀 <a&b> \x01\x7f\xff", ExitCode: 42}
	if err := WriteMarker(path, rec); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := "{\n" +
		`  "timestamp": "2026-01-13T22:30:00.123456+00:00",` + "\n" +
		`  "reason": "tab\t \"quoted\" \\ \u00e9 \ud83d\ude80 <a&b> \u0001\u007f\ufffd",` + "\n" +
		`  "exit_code": 42,` + "\n" +
		`  "method": "sys.exit(42) \u2192 supervisor restart"` + "\n}"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back, err := ParseMarker(got)
	rec.Reason = strings.ToValidUTF8(rec.Reason, "\uFFFD")
	if diff := cmp.Diff(rec, back); diff != "" || err != nil {
		t.Errorf("read back: %v (-want +got):\n%s", err, diff)
	}
}

func TestWriteMarkerReplacesAndLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, MarkerFile)
	for _, reason := range []string{"first, a much longer reason", "second"} {
		if err := WriteMarker(path, MarkerRecord{Timestamp: at, Reason: reason, ExitCode: 42}); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := ParseMarker(raw)
	if err != nil || rec.Reason != "second" {
		t.Errorf("got %+v, %v", rec, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v; want the marker alone", entries, err)
	}
}

func TestWriteMarkerNeedsItsFolder(t *testing.T) {
	if err := WriteMarker(filepath.Join(t.TempDir(), "absent", MarkerFile), MarkerRecord{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestParseMarker(t *testing.T) {
	whole := MarkerRecord{Timestamp: at, Reason: "r", ExitCode: 42}
	fields := func(stamp, reason, code string) string {
		return `{"timestamp":` + stamp + `,"reason":` + reason + `,"exit_code":` + code + `}`
	}
	const stamp = `"2026-01-13T22:30:00.123456+00:00"`
	schema, reading := ErrMarkerSchema, error(nil)
	for name, c := range map[string]struct {
		text string
		want MarkerRecord
		fail bool
		is   error
	}{
		"without method":     {text: fields(stamp, `"r"`, "42"), want: whole},
		"unknown fields":     {text: `{"x":[1],` + fields(stamp, `"r"`, "42")[1:], want: whole},
		"a float":            {text: fields(stamp, `"r"`, "42.0"), want: whole},
		"other code":         {text: fields(stamp, `"r"`, "1"), want: MarkerRecord{Timestamp: at, Reason: "r", ExitCode: 1}},
		"reason null":        {text: fields(stamp, "null", "42"), want: MarkerRecord{Timestamp: at, ExitCode: 42}},
		"reason a number":    {text: fields(stamp, "7", "42"), want: MarkerRecord{Timestamp: at, Reason: "7", ExitCode: 42}},
		"no reason":          {text: `{"timestamp":` + stamp + `,"exit_code":42}`, fail: true, is: schema},
		"no timestamp":       {text: `{"reason":"r","exit_code":42}`, fail: true, is: schema},
		"no code":            {text: `{"reason":"r","timestamp":` + stamp + `}`, fail: true, is: schema},
		"code a word":        {text: fields(stamp, `"r"`, `"42"`), fail: true, is: schema},
		"code null":          {text: fields(stamp, `"r"`, `null`), fail: true, is: schema},
		"code broken":        {text: fields(stamp, `"r"`, `42.5`), fail: true, is: schema},
		"code huge":          {text: fields(stamp, `"r"`, `1e300`), fail: true, is: schema},
		"timestamp a number": {text: fields("1768343400", `"r"`, "42"), fail: true, is: schema},
		"timestamp odd":      {text: fields(`"soon"`, `"r"`, "42"), fail: true, is: reading},
		"a list":             {text: `["timestamp","reason","exit_code"]`, fail: true, is: schema},
		"null":               {text: `null`, fail: true, is: schema},
		"half a file":        {text: fields(stamp, `"r"`, "42")[:30], fail: true, is: reading},
		"empty":              {text: "", fail: true, is: reading},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseMarker([]byte(c.text))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if c.fail != (err != nil) || errors.Is(err, ErrMarkerSchema) != (c.is == ErrMarkerSchema) || errors.Is(err, ErrNoMarker) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func FuzzParseMarker(f *testing.F) {
	f.Add([]byte(`{"timestamp":"2026-01-13T22:30:00+00:00","reason":"r","exit_code":42,"method":"m"}`))
	f.Add([]byte(`{"timestamp":1,"reason":null,"exit_code":4e9}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		rec, err := ParseMarker(raw)
		if err != nil {
			return
		}
		rec.Reason = strings.ToValidUTF8(rec.Reason, "\uFFFD")
		back, err := ParseMarker(rec.encode())
		if err != nil || !back.Timestamp.Equal(rec.Timestamp) || back.Reason != rec.Reason || back.ExitCode != rec.ExitCode {
			t.Errorf("%q was read as %+v, which is read as %+v, %v", raw, rec, back, err)
		}
	})
}
