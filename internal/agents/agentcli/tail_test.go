package agentcli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/testing/hostpath"
	_ "github.com/outlive-mcp/outlive/internal/testing/tier" // fixes the seed of rapid
)

// lineParser keeps the lines that it gets.
type lineParser struct {
	about
	turn
	lines []string
}

func (p *lineParser) now() *turn { return &p.turn }
func (p *lineParser) line(text []byte) bool {
	p.lines = append(p.lines, excerpt(string(text), 80))
	p.Turns = 1
	return true
}

func newLines() parser { return &lineParser{} }

// shown is what a transcript of lines has read, with its sequence.
func shown(t testing.TB, tr *transcript) ([]string, int64) {
	t.Helper()
	if err := tr.look(time.Time{}); err != nil {
		t.Fatal(err)
	}
	return tr.parser.(*lineParser).lines, tr.seq
}

func TestTailReadsOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	tr := newTranscript(path, newLines)
	steps := []struct {
		name string
		do   func()
		want []string
		same bool // no new evidence
	}{
		{"two lines", func() { writeFile(t, path, "a\nb\n") }, []string{"a", "b"}, false},
		{"nothing new", func() {}, []string{"a", "b"}, true},
		{"half a line", func() { appendFile(t, path, "half") }, []string{"a", "b"}, true},
		{"its other half", func() { appendFile(t, path, " a line\n") }, []string{"a", "b", "half a line"}, false},
		{"empty lines", func() { appendFile(t, path, "\n\r\n") }, []string{"a", "b", "half a line"}, true},
		{"truncated and shorter", func() { writeFile(t, path, "new\n") }, []string{"new"}, false},
		{"written anew in place, and longer", func() { writeFile(t, path, "other lines\nthan before\n") }, []string{"other lines", "than before"}, false},
		{"replaced by another file", func() {
			writeFile(t, path+".new", "other lines\nthan before\nmore\n")
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}, []string{"other lines", "than before", "more"}, false},
		{"a line that is too long", func() {
			appendFile(t, path, strings.Repeat("x", longestLine+1)+"\nafter it\n")
		}, []string{"other lines", "than before", "more", "after it"}, false},
		{"the longest line", func() {
			appendFile(t, path, strings.Repeat("y", longestLine-1)+"\n")
		}, []string{"other lines", "than before", "more", "after it", excerpt(strings.Repeat("y", 100), 80)}, false},
	}
	last := int64(0)
	for _, step := range steps {
		step.do()
		got, seq := shown(t, tr)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Fatalf("%s: %s", step.name, diff)
		}
		if seq < last || step.same != (seq == last) {
			t.Fatalf("%s: the sequence was %d and is %d", step.name, last, seq)
		}
		last = seq
	}
}

func TestTailOfWhatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "t.jsonl")
	tr := newTranscript(path, newLines)
	if err := tr.look(time.Time{}); !missing(err) {
		t.Errorf("no file: %v", err)
	}
	writeFile(t, filepath.Join(dir, "secret"), "a\n")
	if err := os.Symlink(filepath.Join(dir, "secret"), path); err != nil {
		t.Logf("no links here, so none to be followed: %v", err)
	} else if err := tr.look(time.Time{}); !missing(err) {
		t.Errorf("a link was followed: %v", err)
	}
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := tr.look(time.Time{}); !missing(err) {
		t.Errorf("a directory: %v", err)
	}
}

func TestOldTranscriptsAreNotOpened(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	writeFile(t, path, "a\n")
	since := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path, since.Add(-time.Minute), since.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	tr := newTranscript(path, newLines)
	if err := tr.look(since); !missing(err) || len(tr.parser.(*lineParser).lines) > 0 {
		t.Errorf("it was read: %v", err)
	}
	appendFile(t, path, "b\n")
	if err := tr.look(since); err != nil {
		t.Errorf("written on: %v", err)
	}
}

// Of a large transcript only the end is read, but enough of it to know what is open and which session it is.
func TestLargeTranscriptIsReadAtItsEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	var b bytes.Buffer
	b.WriteString(`{"type":"user","sessionId":"s1","cwd":"` + hostpath.InText("/home/u/shop", "/home") + `","timestamp":"2026-11-21T13:00:00Z","message":{"content":"first"}}` + "\n")
	filler := `{"type":"attachment","sessionId":"other","cwd":"/elsewhere","x":"` + strings.Repeat("z", 100_000) + `"}` + "\n"
	for b.Len() < 3<<20 {
		b.WriteString(filler)
	}
	b.WriteString(`{"type":"user","timestamp":"2026-11-21T13:05:00Z","message":{"content":"second"}}` + "\n")
	for b.Len() < 4400_000 { // the last prompt is before the part that is read at first
		b.WriteString(filler)
	}
	writeFile(t, path, b.String())
	tr := newTranscript(path, newClaude)
	if err := tr.look(time.Time{}); err != nil {
		t.Fatal(err)
	}
	s := tr.session(Claude)
	if s.ID != "s1" || hostpath.Slashed(s.Dir) != "/home/u/shop" || s.Turn.Open != Model || s.Turn.Turns != 1 {
		t.Errorf("%+v", s)
	}
	if s.Turn.Sequence <= 3<<20 || s.Turn.Sequence >= int64(b.Len()) {
		t.Errorf("sequence %d of %d", s.Turn.Sequence, b.Len())
	}
}

// Whatever a writer does between the looks, a reader that has followed has the same result as one that begins now.
func TestTailIsTheSameAsReadingAnew(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "t.jsonl")
	rapid.Check(t, func(rt *rapid.T) {
		writeFile(t, path, "")
		tr := newTranscript(path, newLines)
		last := int64(0)
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			text := rapid.StringMatching(`[ab\n]{0,12}`).Draw(rt, "text")
			switch rapid.SampledFrom([]string{"append", "append", "append", "write", "replace"}).Draw(rt, "how") {
			case "append":
				appendFile(t, path, text)
			case "write":
				writeFile(t, path, text)
			case "replace":
				writeFile(t, path+".new", text)
				if err := os.Rename(path+".new", path); err != nil {
					rt.Fatal(err)
				}
			}
			stamped := time.Unix(1_800_000_000+int64(i), 0) // the clock of a file system may be coarse
			if err := os.Chtimes(path, stamped, stamped); err != nil {
				rt.Fatal(err)
			}
			got, seq := shown(t, tr)
			var want []string
			for line := range strings.Lines(string(mustRead(t, path))) {
				if trimmed := strings.TrimSpace(line); strings.HasSuffix(line, "\n") && trimmed != "" {
					want = append(want, trimmed)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				rt.Fatalf("read %q, there is %q", got, want)
			}
			if seq < last {
				rt.Fatalf("the sequence went back from %d to %d", last, seq)
			}
			last = seq
		}
	})
}
