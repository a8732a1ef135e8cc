package e2e

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// oddForm is one way of servers/odd_server to be odd, over one transport, and what a client must get of it all the same.
type oddForm struct {
	transport, name, why string
	// want is what the result of a call has in it; "answer" means any answer or error, in time, and "refused" the same of the handshake.
	// "error" means an error that quotes the answer: it is no JSON, though the Python SDK reads it.
	want string
	how  []string // words of oddGroup.how
}

func (f oddForm) String() string { return f.transport + "/" + f.name }

func (f oddForm) is(word string) bool { return slices.Contains(f.how, word) }

// oddGroup are forms of which the same is wanted.
type oddGroup struct {
	on   string // transports
	want string // "" is OK, which the tool says
	// how the client behaves: raw (only the raw client does it), big (ids from 2^53), old (speaks 2025-06-18), eof (leaves while a call
	// runs), lost (does not wait for its first call), cancel (cancels it), progress (wants it).
	// When it is tried: again (on these transports by the hunt alone, because the form has another one as well), due (not at the door:
	// outlive is worse than direct today, and the full run says so; or a call that is made as a stream ends is lost, with outlive and
	// without).
	how   string
	names string
}

var oddGroups = []oddGroup{
	{on: "stdio http sse", names: "plain"},
	{on: "stdio", names: `
		id-string id-string-calls id-float id-string-float answered-twice answer-to-nobody error-to-nobody notification-answered
		notification-answered-without-id reads-integers-only dies-of-string-ids
		caps-empty caps-null caps-missing caps-resources caps-tools-null caps-tools-true caps-array
		prompts-unanswered resources-unanswered templates-unanswered prompts-slow lists-refused lists-null tools-twice one-bad-tool
		cursor-empty cursor-same cursor-endless cursor-null cursor-number cursor-refused cursor-unanswered
		tool-null-members tool-no-schema tool-schema-null tool-more-members
		version-2024-11-05 version-2025-03-26 version-2025-06-18 version-2025-11-25 version-1.0 version-2027-01-01 version-20250618 version-None
		info-missing info-null instructions-null
		id-member-twice result-member-twice jsonrpc-member-twice
		noise-json noise-array noise-numbers noise-number noise-string noise-null noise-blank noise-text noise-nul noise-ansi noise-envelope
		noise-deep noise-brace noise-long noise-bad-utf8 noise-utf16 banner echoes stderr-flood
		content-length pretty crlf bom spaces byte-by-byte
		no-jsonrpc jsonrpc-1.0 jsonrpc-number error-null result-null array-of-one more-members content-unknown content-null-members is-error-text
		progress-made-up progress-without-token progress-late
		question-0 question-text-0 question-big question-1.5 question-own-id question-roots question-unknown question-twice question-before-hello
		slow-start slow-hello first-start-fails ignores-eof exits-after-call exits-after-list closed-stderr
		list-changed-after-list list-changed-storm list-changed-before-hello log-before-hello unknown-notification
		ping-refused ping-unanswered unknown-is-empty unknown-is-null unknown-is-32600 unknown-is-silent unknown-is-death
		initialized-needed params-needed meta-refused hello-exact hello-once list-needed`},
	{on: "stdio", how: "raw big", names: "id-above-53-bits"},
	{on: "stdio", how: "raw old", names: "version-refused"},
	{on: "stdio", how: "raw eof", names: "eof-while-calling"},
	{on: "stdio", how: "raw", want: "1e400", names: "number-1e400"},
	{on: "stdio", how: "lost", names: "python-repr answer-cut two-in-a-line log-before-answer"},
	{on: "stdio", how: "cancel", names: "cancelled-is-answered cancelled-is-ignored"},
	{on: "stdio", how: "cancel", want: "answer", names: "dies-of-cancelled"},
	{on: "stdio", how: "progress", names: "progress-token-string progress-falling progress-text"},
	{on: "stdio", want: "error", names: "nan infinity"},
	{on: "stdio", want: "answer", names: `
		neither both method-and-result trailing-comma control-character lone-surrogate
		error-text error-code-text error-without-message result-text result-array content-text content-missing`},
	{on: "stdio", want: "caf", names: "bad-utf8-in-text"},
	{on: "stdio", want: "\u20ac", names: "split-utf8"},
	{on: "stdio", want: "xxxxxxxx", names: "long-answer"},
	{on: "stdio sse", want: `a\u2028b\u2029c`, names: "odd-text"},
	{on: "stdio", want: `\u0000a\u2028b`, names: "escaped-text"},
	{on: "stdio", want: "[1915883588174806058,-0,0.1000000000000000055,1E5,1.0]", names: "numbers"},

	{on: "http", how: "again", names: `
		id-string id-string-calls id-float answered-twice caps-empty caps-null caps-missing prompts-unanswered lists-refused cursor-empty cursor-same
		cursor-refused tool-null-members one-bad-tool version-2024-11-05 version-1.0 info-missing id-member-twice result-member-twice no-jsonrpc
		error-null array-of-one content-null-members progress-made-up unknown-is-empty unknown-is-32600 meta-refused reads-integers-only`},
	{on: "http", how: "again progress", names: "progress-token-string"},
	{on: "http", how: "again", want: "error", names: "nan"},
	{on: "http", how: "again", want: "answer", names: "neither both method-and-result trailing-comma error-text result-text"},
	{on: "http", how: "again", want: `a\u2028b\u2029c`, names: "odd-text"},
	{on: "http", how: "again", want: "[1915883588174806058,-0,0.1000000000000000055,1E5,1.0]", names: "numbers"},
	{on: "http", how: "again", want: "xxxxxxxx", names: "long-answer"},
	{on: "http", names: `
		note-200-null note-200-html note-200-object note-id-null note-ok note-204 note-stream note-stays-open note-400 note-500
		get-404 get-400 get-500 get-page get-json get-wrong-length get-ends
		lost-404 lost-404-page lost-400 lost-400-new lost-400-text no-session session-changes cookie
		sse-plain sse-crlf sse-cr sse-lines sse-no-space sse-comments sse-ping sse-empty-data sse-bom sse-done sse-array sse-unfinished
		sse-stays-open sse-bytes moved-307 moved-308 moved-307-absolute
		charset json-rpc-type gzip body-bom body-blank status-201 status-202 http-1.0 no-length chunk-a-byte delete-hangs delete-500
		unknown-404 unknown-400 unknown-500 accept-needed type-needed version-needed`},
	{on: "http", want: "refused", names: "moved-301 text-plain no-type sse-as-json json-as-sse sse-other-name"},
	{on: "http", want: "answer", names: "closes call-400 call-400-null call-403 call-422 call-empty call-202 call-page call-cut busy-429 busy-503"},

	{on: "sse", how: "again", names: "id-string"},
	{on: "sse", how: "again", want: "error", names: "nan"},
	{on: "sse", names: `
		first-comment first-retry first-ping first-open first-bom endpoint-late
		post-400 post-403 post-404 post-406 post-415 post-419 post-422 post-501 post-stream
		endpoint-relative endpoint-dot endpoint-dots endpoint-absolute endpoint-query endpoint-spaces endpoint-twice
		event-crlf event-no-name event-no-space event-ping code-200 code-204 answer-first`},
	{on: "sse", how: "due", names: "stream-ends"},
}

// oddServerArgv is the command line of servers/odd_server.
func oddServerArgv(args ...string) []string {
	cache := "pycache_prefix=" + filepath.Join(tools.root, ".work", "pycache")
	return append([]string{tools.python, "-S", "-E", "-X", cache, filepath.Join(tools.root, "servers", "odd_server", "__main__.py")}, args...)
}

// oddReasons is what the program says it has: by transport and name, the reason.
var oddReasons = sync.OnceValues(func() (why map[string]map[string]string, err error) {
	argv := oddServerArgv("list")
	said, err := exec.Command(argv[0], argv[1:]...).Output()
	if err == nil {
		err = json.Unmarshal(said, &why)
	}
	return why, err
})

// oddForms are all forms of the table, in its order.
func oddForms(t *testing.T) (all []oddForm) {
	t.Helper()
	why, err := oddReasons()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range oddGroups {
		if g.want == "" {
			g.want = "OK"
		}
		for transport := range strings.FieldsSeq(g.on) {
			for name := range strings.FieldsSeq(g.names) {
				all = append(all, oddForm{transport, name, why[transport][name], g.want, strings.Fields(g.how)})
			}
		}
	}
	return all
}

// TestOddForms: the table has each form of the program on each of its transports, once, and no other.
func TestOddForms(t *testing.T) {
	times := map[string]int{}
	for _, f := range oddForms(t) {
		if times[f.String()]++; f.why == "" || times[f.String()] > 1 {
			t.Errorf("%s: servers/odd_server does not have it, or the table has it twice", f)
		}
	}
	why, _ := oddReasons() // oddForms has looked
	for transport, names := range why {
		for name := range names {
			if times[transport+"/"+name] == 0 {
				t.Errorf("the table lacks %s/%s", transport, name)
			}
		}
	}
}
