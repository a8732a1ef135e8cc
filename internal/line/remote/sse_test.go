package remote

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/outlive-mcp/outlive/internal/protocol/jsonrpc"
)

// told is an event with what the reader knows after it.
type told struct {
	Name, Data, ID string
	Retry          time.Duration
	TooLong        bool
}

func readAll(from io.Reader, max int) (all []told, err error) {
	r := newSSEReader(from, max)
	for {
		e, err := r.next()
		if err != nil {
			return all, err
		}
		all = append(all, told{e.name, string(e.data), r.lastID, r.retry, e.tooLong})
	}
}

func TestSSE(t *testing.T) {
	const none = time.Duration(-1)
	for _, tc := range []struct {
		name, text string
		want       []told
	}{
		{"one", "data: a\n\n", []told{{Data: "a", Retry: none}}},
		{"no space", "data:a\n\n", []told{{Data: "a", Retry: none}}},
		{"one space is taken", "data:  a \n\n", []told{{Data: " a ", Retry: none}}},
		{"lines are joined", "data: a\ndata\ndata: b\n\n", []told{{Data: "a\n\nb", Retry: none}}},
		{"ends of line", "data: a\r\ndata: b\rdata: c\n\r\n", []told{{Data: "a\nb\nc", Retry: none}}},
		{"byte order mark", "\uFEFFdata: a\n\n", []told{{Data: "a", Retry: none}}},
		{"comments and unknown fields", ": x\nfoo: bar\ndata: a\n\n", []told{{Data: "a", Retry: none}}},
		{"comments alone are not events", ": x\n\n: y\n\n", nil},
		{"name", "event: endpoint\ndata: /x\n\n", []told{{Name: "endpoint", Data: "/x", Retry: none}}},
		{"id stays", "id: 1\ndata: a\n\ndata: b\n\n", []told{{Data: "a", ID: "1", Retry: none}, {Data: "b", ID: "1", Retry: none}}},
		{"id is reset", "id: 1\n\nid\n\n", []told{{ID: "1", Retry: none}, {Retry: none}}},
		{"id with a null", "id: 1\n\nid: 2\x00\ndata: a\n\n", []told{{ID: "1", Retry: none}, {Data: "a", ID: "1", Retry: none}}},
		{"retry", "retry: 1500\n\nretry: x\n\ndata: a\n\n", []told{{Retry: 1500 * time.Millisecond}, {Data: "a", Retry: 1500 * time.Millisecond}}},
		{"retry in a year", "retry: 2147483647\n\n", []told{{Retry: longestRetry}}},
		{"unfinished", "data: a\n\ndata: b\n", []told{{Data: "a", Retry: none}}},
		{"unfinished, a message", "id: 1\ndata: {\"method\":\"a\"}\n", []told{{Data: `{"method":"a"}`, ID: "1", Retry: none}}},
		{"unfinished, a message over two lines", "data: {\ndata: \"method\":\"\"}", []told{{Data: "{\n\"method\":\"\"}", Retry: none}}},
		{"unfinished, half of a message", "data: {\"method\":\"a\"", nil},
		{"too long", "data: 0123456789abcdef\n\ndata: a\n\n", []told{{TooLong: true, Retry: none}, {Data: "a", Retry: none}}},
		{"too long in pieces", "data: 01234567\ndata: 89abcdef\n\ndata: a\n\n", []told{{TooLong: true, Retry: none}, {Data: "a", Retry: none}}},
		{"just fits", "data: 0123456789abcde\n\n", []told{{Data: "0123456789abcde", Retry: none}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := readAll(strings.NewReader(tc.text), 16)
			if err != io.EOF {
				t.Errorf("ended with %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The id of an event that was not read to its end is not where the stream goes on: the event would be lost.
func TestIDOfAnUnfinishedEvent(t *testing.T) {
	r := newSSEReader(strings.NewReader("id: 1\ndata: a\n\nid: 2\ndata: {\"method\""), 16)
	for {
		if _, err := r.next(); err != nil {
			break
		}
	}
	if r.lastID != "1" {
		t.Errorf("the stream goes on after %q", r.lastID)
	}
}

func TestSSETellsABreakFromAnEnd(t *testing.T) {
	broken := errors.New("reset")
	_, err := readAll(io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(broken)), 16)
	if !errors.Is(err, broken) {
		t.Errorf("ended with %v", err)
	}
}

// Where the network cuts a stream into pieces does not matter, nothing longer than allowed is kept, and no event holds the end of a
// line that the standard knows, but for those that join its lines.
func FuzzSSE(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "id: 1\r\nretry: 5\r\ndata: {}\r\n\r\n", "\uFEFF: x\rdata:a\rdata\r\r", "event: endpoint\ndata: /x\n\n\n\n",
		"data: 0123456789abcdefghij\n\n", "\xEF\xBB", "id\x00: \n\n", "data\r\r\n\n",
		"id: longer than it may be\x00\n\n", "id: longer than it may be\n\n", "data:{\"method\":\"\"}", "data:{\ndata:\"method\":\"\"}\r", "data:[1]\nid:2",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		const max = 16
		whole, err := readAll(strings.NewReader(text), max)
		if err != io.EOF {
			t.Fatalf("ended with %v", err)
		}
		pieces, _ := readAll(iotest.OneByteReader(strings.NewReader(text)), max)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("byte by byte it is something else: %s", diff)
		}
		for _, e := range whole {
			if len(e.Data) > max || strings.Contains(e.Data, "\r") || e.TooLong && e.Data != "" {
				t.Errorf("event %+v", e)
			}
		}
		if diff := cmp.Diff(reference(text, max), whole); diff != "" {
			t.Errorf("not as the standard says: %s", diff)
		}
	})
}

// reference is the standard's algorithm written down without regard to memory or pieces.
func reference(text string, max int) (all []told) {
	text = strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	var e told
	e.Retry = -1
	var data []string
	any := false
	for i, line := range lines {
		if i == len(lines)-1 && line == "" {
			break // the text ends with an end of line
		}
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if any {
				if e.Data = strings.Join(data, "\n"); tooLong(data, max) {
					e.Data, e.TooLong = "", true
				}
				all = append(all, e)
			}
			e.Name, e.Data, e.TooLong, data, any = "", "", false, nil, false
		case key == "data":
			any, data = true, append(data, value)
		case key == "event":
			any, e.Name = true, cutTo(line, value, max)
		case key == "id" && !strings.Contains(value, "\x00") && len(value) <= max:
			any, e.ID = true, value
		case key == "retry":
			var ms int64
			if n, err := fmt.Sscanf(value+"$", "%d$", &ms); n == 1 && err == nil && isDigits(value) && ms < 1<<31 {
				any, e.Retry = true, min(time.Duration(ms)*time.Millisecond, longestRetry)
			}
		}
	}
	var whole jsonrpc.Envelope // which is handed on without its blank line
	if e.Data = strings.Join(data, "\n"); data != nil && !tooLong(data, max) && whole.Scan(jsonrpc.Trim([]byte(e.Data))) == nil {
		all = append(all, e)
	}
	return all
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// tooLong counts as the reader does: a byte more for each line.
func tooLong(data []string, max int) bool {
	kept := 0
	for i, d := range data {
		if kept+len(d)+1 > max {
			return true
		}
		if kept += len(d); i > 0 {
			kept++
		}
	}
	return false
}

// cutTo shortens the value of a field as the reader does in a line that is too long for any event.
func cutTo(line, value string, max int) string {
	if over := len(line) - (max + len("\uFEFFdata: ") + 1); over > 0 {
		return value[:len(value)-min(over, len(value))]
	}
	return value
}
