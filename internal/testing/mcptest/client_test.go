package mcptest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// scripted connects a client to a peer that answers each line with the raw text of reply.
func scripted(t *testing.T, reply func(line string) string) *Client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer outW.Close()
		lines := bufio.NewScanner(inR)
		for lines.Scan() {
			if _, err := io.WriteString(outW, reply(lines.Text())); err != nil {
				return
			}
		}
	}()
	c := NewClient(Join(outR, inW))
	t.Cleanup(func() {
		_ = c.Close()
		<-done
	})
	return c
}

func TestClientNoticesWrongAnswers(t *testing.T) {
	const right = `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
	for name, tc := range map[string]struct{ reply, want string }{
		"right":          {right, ""},
		"double":         {right + right, "answered before"},
		"other bytes":    {`{"jsonrpc":"2.0","id":7.0,"result":{}}` + "\n" + right, "7.0, which was never asked"},
		"string for int": {`{"jsonrpc":"2.0","id":"7","result":{}}` + "\n" + right, `"7", which was never asked`},
		"garbage":        {"hello\n" + right, "hello"},
		"no message":     {`{"level":30}` + "\n" + right, "no JSON-RPC message"},
		"null id":        {`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}` + "\n" + right, "null, which was never asked"},
		"CR":             {`{"jsonrpc":"2.0","method":"a"}` + "\r\n" + right, "carriage return"},
		"no version":     {`{"method":"a"}` + "\n" + right, `no "jsonrpc"`},
		"array":          {`[` + strings.TrimSpace(right) + `]` + "\n" + right, "cannot unmarshal array"},
	} {
		t.Run(name, func(t *testing.T) {
			c := scripted(t, func(line string) string {
				if strings.Contains(line, `"last"`) {
					return `{"jsonrpc":"2.0","id":8,"result":{}}` + "\n"
				}
				return tc.reply
			})
			if _, err := c.CallID(testContext(t), "7", "ping", nil); err != nil {
				t.Fatal(err)
			}
			if _, err := c.CallID(testContext(t), "8", "last", nil); err != nil {
				t.Fatal(err)
			}
			err := c.Verify()
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("problem seen in a right answer: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("problems %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestClientNoticesMissingAnswers(t *testing.T) {
	c := scripted(t, func(string) string { return "" })
	p := c.GoID(`"lost"`, "ping", nil)
	if err := c.Verify(); err == nil || !strings.Contains(err.Error(), `never answered: "lost"`) {
		t.Errorf("Verify: %v", err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(testContext(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("after the end: %v, want ErrClosed", err)
	}
	if _, err := c.Call(testContext(t), "ping", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("call after the end: %v, want ErrClosed", err)
	}
}

func TestClientCancelsWhenContextEnds(t *testing.T) {
	seen := make(chan string, 4)
	c := scripted(t, func(line string) string { seen <- line; return "" })
	ctx, cancel := context.WithCancel(testContext(t))
	go func() { <-seen; cancel() }()
	if _, err := c.Call(ctx, "tools/list", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("call: %v", err)
	}
	if line := <-seen; !strings.Contains(line, `"method":"notifications/cancelled"`) || !strings.Contains(line, `"requestId":1`) {
		t.Errorf("sent %s", line)
	}
	mustVerify(t, c)
}

// An id used twice at once gets its answers in the order asked.
func TestClientDoubleID(t *testing.T) {
	n := 0
	c := scripted(t, func(string) string {
		if n++; n == 2 {
			return `{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"duplicate"}}` + "\n" + `{"jsonrpc":"2.0","id":7,"result":{}}` + "\n"
		}
		return ""
	})
	first, second := c.GoID("7", "a", nil), c.GoID("7", "b", nil)
	_, err := first.Wait(testContext(t))
	wantCode(t, "first answer", err, codeInvalidRequest)
	if _, err := second.Wait(testContext(t)); err != nil {
		t.Errorf("second answer: %v", err)
	}
	mustVerify(t, c)
}

func TestWaitAfterSkipsWhatIsKnown(t *testing.T) {
	c := ready(t)
	known := len(c.Lines())
	if known == 0 {
		t.Fatal("no line of the handshake")
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := c.WaitAfter(ctx, known, func(string) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("WaitAfter: %v", err)
	}
	if _, err := c.WaitFor(ctx, func(l string) bool { return strings.Contains(l, "protocolVersion") }); err != nil {
		t.Errorf("WaitFor: %v", err)
	}
}
