package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/go-telegram/bot/models"
)

// pollError is an error response to a poll.
type pollError struct {
	Code        int
	Description string
	RetryAfter  int // seconds
}

// Error is what the server said.
func (e *pollError) Error() string { return fmt.Sprintf("telegram: %d %s", e.Code, e.Description) }

// pollLimit is how many bytes the answer to a poll may have: a hundred updates are far below.
const pollLimit = 16 << 20

// poll asks for updates from next on, and waits for the first; not before it is known that we may. The library can ask only in a loop of its own, which
// confirms an update before it was dealt with; so the request is made here.
func (u *Updates) poll(ctx context.Context, next int64) ([]json.RawMessage, error) {
	patience := 0
	if u.Hears() {
		patience = int(pollTime / time.Second)
	}
	body, err := json.Marshal(map[string]any{
		"offset": next, "timeout": patience, "limit": 100,
		"allowed_updates": []string{models.AllowedUpdateMessage, models.AllowedUpdateCallbackQuery},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pollTime+answerTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("telegram: %w", ErrURL)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := tokenless{u.opts.Client}.Do(request)
	if err != nil {
		return nil, fmt.Errorf("telegram: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		OK          bool              `json:"ok"`
		Result      []json.RawMessage `json:"result"`
		Code        int               `json:"error_code"`
		Description string            `json:"description"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
		} `json:"parameters"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, pollLimit)).Decode(&answer); err != nil {
		return nil, fmt.Errorf("telegram: %s: %w", response.Status, err)
	}
	if !answer.OK {
		if answer.Code == 0 {
			answer.Code = response.StatusCode
		}
		return nil, &pollError{answer.Code, answer.Description, answer.Parameters.RetryAfter}
	}
	return answer.Result, nil
}
