//go:build unix

package hosts

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/outlive-mcp/outlive/internal/testing/tier"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestResolve(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	if err := os.WriteFile(file, []byte("# mine\na\n b\t~/x y/outlive # there\n\nme@c\na\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for list, want := range map[string][]Host{
		"all":            {{"a", ""}, {"b", "~/x y/outlive"}, {"me@c", ""}},
		"@" + file:       {{"a", ""}, {"b", "~/x y/outlive"}, {"me@c", ""}},
		"z, b,b":         {{"z", ""}, {"b", "~/x y/outlive"}},
		"localhost,fe::": {{"localhost", ""}, {"fe::", ""}},
	} {
		got, err := Resolve(list, file)
		if err != nil || cmp.Diff(want, got) != "" {
			t.Errorf("%s: %v %v", list, got, err)
		}
	}
	for list, want := range map[string]string{
		"-v": "does not begin with -", "u@-v": "does not begin with -", "a b": "is in no name", "$(x)": "is in no name", "a\nb": "is in no name", "@" + file + ".none": "no such file",
		"@b": "no such file", "u@": "want NAME or USER@NAME", "a/b": "belong into ~/.ssh/config", strings.Repeat("x", 256): "too long", ",": "want names of hosts",
	} {
		if got, err := Resolve(list, file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v %v, want %q", list, got, err, want)
		}
	}
}

// Whatever an argument is, a shell makes that one word of it.
func TestQuotingIsForAShell(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[^\x00]{0,12}`), 1, 4).Draw(r, "words")
		quoted := make([]string, len(words))
		for n, w := range words {
			quoted[n] = quote(w)
		}
		out, err := exec.Command("sh", "-c", `for w in `+strings.Join(quoted, " ")+`; do printf '%s\0' "$w"; done`).Output()
		if err != nil || string(out) != strings.Join(words, "\x00")+"\x00" {
			r.Fatalf("%q became %q: %v", words, out, err)
		}
	})
}

// fake is a program in ssh's place that runs a script with the remote command as $command.
func fake(t *testing.T, script string, o Options) *Set {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "ssh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nhost=$2 command=$3\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outlive"), []byte("#!/bin/sh\nif [ \"$1\" = --version ]; then echo outlive 7; exit; fi\nfor w; do echo \"<$w>\"; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	o.SSH, o.Version = []string{path}, "1"
	return NewSet([]Host{{Name: "h"}}, o)
}

func ask(s *Set, args ...string) (a Answer) {
	s.Ask(context.Background(), args, func(got Answer) { a = got })
	return a
}

func TestAnAnswer(t *testing.T) {
	s := fake(t, `echo "a greeting of a shell"; echo "outlive is here"; exec sh -c "$command"`, Options{})
	a := ask(s, "a b", "it's", `\'"$HOME`)
	if a.Err != nil || a.Version != "7" || string(a.Out) != "<a b>\n<it's>\n<\\'\"$HOME>\n" || !s.Differs(a.Version) {
		t.Errorf("%+v %s", a, a.Out)
	}
}

// A terminal on a host shows what outlive there draws, and nothing else.
func TestATerminal(t *testing.T) {
	s := fake(t, `exec sh -c "$command"`, Options{Self: "here"})
	home := t.TempDir()
	there := filepath.Join(home, "x y", "outlive")
	if err := os.Mkdir(filepath.Dir(there), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(there, []byte("#!/bin/sh\necho \"at $0: $*\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for program, want := range map[string]string{"": "<attach>\n<it's>\n", "~/x y/outlive": "at " + there + ": attach it's\n"} {
		got, err := s.Terminal(Host{"h", program}, []string{"attach", "it's"}).Output()
		if err != nil || string(got) != want {
			t.Errorf("%q: %q, %v", program, got, err)
		}
	}
	if got := s.Terminal(Host{Name: Local}, []string{"attach", "it's"}).Args; cmp.Diff([]string{"here", "attach", "it's"}, got) != "" {
		t.Errorf("on this machine: %q", got)
	}
}

func TestNoAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		kind   Kind
		text   string
	}{
		"time":     {"sleep 60", Silent, "nothing was heard of it within 300ms"},
		"helper":   {"sleep 60 & echo $! >&2; wait", Silent, "nothing was heard"},
		"ssh":      {"echo one >&2; echo Host key verification failed. >&2; exit 255", Unreachable, "one\nHost key verification failed.\nConnect once by hand to accept its key: ssh h"},
		"none":     {"PATH=/usr/bin:/bin HOME=/nowhere exec /bin/sh -c \"$command\"", NoOutlive, "outlive is not there"},
		"silence":  {"exit 0", Unreadable, "it did not say which version"},
		"refusal":  {"echo outlive 3; echo 'outlive: no such thing' >&2; exit 2", Refused, "no such thing"},
		"not ours": {"echo what >&2; exit 3", Refused, "what"},
	} {
		t.Run(name, func(t *testing.T) {
			var o Options
			if c.kind == Silent {
				o.Limit = 300 * time.Millisecond
			}
			a := ask(fake(t, c.script, o), "status")
			if a.Err == nil || KindOf(a.Err) != c.kind || !strings.Contains(a.Err.Error(), c.text) {
				t.Errorf("%s: %v, want %s: %s", KindOf(a.Err).Word(), a.Err, c.kind.Word(), c.text)
			}
		})
	}
	missing := NewSet([]Host{{Name: "h"}}, Options{SSH: []string{"no-such-ssh"}})
	if a := ask(missing); a.Err == nil || !strings.Contains(a.Err.Error(), "install OpenSSH's client") {
		t.Errorf("%v", a.Err)
	}
}

// What ssh leaves behind to share its connection does not hold an answer up.
func TestASharedConnectionStays(t *testing.T) {
	shared := filepath.Join(t.TempDir(), "shared") // the connection stays until this is gone, long after the answer
	if err := os.WriteFile(shared, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := fake(t, `(while test -e '`+shared+`'; do sleep 0.1; done) & exec sh -c "$command"`, Options{Limit: tier.Limit(4 * time.Second)})
	began := time.Now()
	if a := ask(s, "x"); a.Err != nil || string(a.Out) != "<x>\n" {
		t.Errorf("%v %s", a.Err, a.Out)
	}
	tier.Within(t, "the answer", time.Since(began), 3*time.Second)
}

func TestFollowing(t *testing.T) {
	s := fake(t, `echo outlive 7; echo one; echo two; exit 255`, Options{})
	var lines []string
	err := s.Follow(context.Background(), s.Hosts[0], nil, func(l []byte) { lines = append(lines, string(l)) })
	if cmp.Diff([]string{"one", "two"}, lines) != "" || KindOf(err) != Unreachable {
		t.Errorf("%q %v", lines, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s = fake(t, `echo outlive 7; echo one; sleep 60`, Options{})
	if err := s.Follow(ctx, s.Hosts[0], nil, func([]byte) { cancel() }); err != context.Canceled {
		t.Errorf("%v", err)
	}
}

// carrier is a way to a host on which outlive says its version, and nothing more.
type carrier struct{}

func (carrier) Carry(ctx context.Context, _ string, _ []string, out, _ io.Writer) error {
	_, _ = io.WriteString(out, "outlive 7\n")
	<-ctx.Done()
	return ctx.Err()
}

// A connection that dies between the version and the first line is noticed, too: the host can be tried again.
func TestFollowingNoticesSilenceFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSet([]Host{{Name: "a"}}, Options{Carrier: carrier{}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err := s.Follow(ctx, s.Hosts[0], nil, func(l []byte) { t.Errorf("a line: %s", l) })
		if KindOf(err) != Silent {
			t.Errorf("%v", err)
		}
	})
}
