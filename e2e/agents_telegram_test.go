package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/outlive-mcp/outlive/e2e/mockmodel"
)

// TestPhoneOfSomebodyElse: the same as a press of Allow, against a Telegram for tests that we have not written, which
// knows neither limits nor long polls.
func TestPhoneOfSomebodyElse(t *testing.T) {
	needFull(t, "it counts what is asked within two seconds")
	t.Parallel()
	url := startTestTelegram(t)
	m := newWatcher(t)
	m.env = []string{"TELEGRAM_API_URL=" + url}
	a := m.startAgent("claude", mockmodel.Permission, agentSetup{}, nil, []string{"--ask"}, "--permissions")
	var asked shownMessage
	m.await("the message", func() bool {
		list := shownBy(t, url)
		if len(list) == 0 {
			return false
		}
		asked = list[0]
		return len(asked.Markup.Rows) > 0 && asked.Markup.Rows[0][0].Text == "Allow" // the file may speak before the hook, which adds them
	})
	if asked.Chat != chatName || !strings.Contains(asked.Text, "touch approved.txt") || len(asked.Markup.Rows) == 0 {
		t.Fatalf("the chat shows %+v", asked)
	}
	allow := asked.Markup.Rows[0][0]
	if allow.Text != "Allow" {
		t.Fatalf("the first button is %+v", allow)
	}
	press, err := json.Marshal(map[string]any{"message_id": asked.ID, "data": allow.Data})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url+"/press", "application/json", bytes.NewReader(press))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	a.await("the command", a.approved)
	a.turnEnds()
	m.await("the message to be changed", func() bool {
		return strings.Contains(shownBy(t, url)[0].Text, "resolved") // that server keeps the buttons of an edit without any
	})
	// A server that answers each poll at once must not be asked without a pause.
	polls := func() int {
		var so struct{ Polls int }
		ask(t, url+"/polls", &so)
		return so.Polls
	}
	before := polls()
	time.Sleep(2 * time.Second) // nothing announces that nothing will come
	if n := polls() - before; n > 20 {
		t.Errorf("%d polls in two seconds", n)
	}
}

// startTestTelegram starts it and returns its URL.
func startTestTelegram(t *testing.T) string {
	t.Helper()
	foreign(t, "telegram-test-api")
	cmd := exec.Command(tools.node, filepath.Join(tools.root, "faketelegram", "independent.mjs"), "7:secret", chatName)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // it ends with it
		if err := cmd.Wait(); err != nil {
			t.Errorf("the test Telegram: %v\n%s", err, &complaints)
		}
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	var at struct{ URL string }
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	if err != nil {
		t.Fatalf("the test Telegram says %q: %v", line, err)
	}
	return at.URL
}

// shownMessage is a message as telegram-test-api keeps it.
type shownMessage struct {
	ID     int    `json:"message_id"`
	Chat   string `json:"chat_id"`
	Text   string `json:"text"`
	Markup struct {
		Rows [][]struct {
			Text string `json:"text"`
			Data string `json:"callback_data"`
		} `json:"inline_keyboard"`
	} `json:"reply_markup"`
}

func shownBy(t *testing.T, url string) (list []shownMessage) {
	t.Helper()
	ask(t, url+"/messages", &list)
	return list
}

func ask(t *testing.T, url string, answer any) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		t.Fatalf("the test Telegram, %s: %v", url, err)
	}
}
