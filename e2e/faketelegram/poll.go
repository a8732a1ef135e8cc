package faketelegram

import (
	"net/http"
	"strconv"
	"time"
)

// What Telegram says to a poll that cannot be.
const (
	otherPoll   = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
	webhookPoll = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)

// getUpdates forgets what the offset confirms, ends a poll that is open, and waits as long as nothing is there.
func (s *Server) getUpdates(r *http.Request, p map[string]string) (any, *refusal) {
	offset, _ := strconv.ParseInt(p["offset"], 10, 64)
	seconds, _ := strconv.Atoi(p["timeout"])
	limit, _ := strconv.Atoi(p["limit"])
	if limit < 1 || limit > 100 {
		limit = 100
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Webhook {
		return nil, &refusal{code: 409, description: webhookPoll}
	}
	s.poll++
	mine := s.poll
	s.confirm(offset)
	s.change() // whoever polls sees that it is over
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	for over := seconds == 0; ; {
		if s.poll != mine {
			return nil, &refusal{code: 409, description: otherPoll}
		}
		if len(s.updates) > 0 || over {
			list := []any{}
			for _, u := range s.updates[:min(len(s.updates), limit)] {
				list = append(list, u.body)
			}
			return list, nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-end.C:
			over = true
		case <-r.Context().Done():
			over = true
		}
		s.mu.Lock()
	}
}

// confirm forgets all updates before offset. A negative one keeps only the last so many.
func (s *Server) confirm(offset int64) {
	if offset < 0 {
		s.updates = s.updates[max(0, len(s.updates)+int(offset)):]
		return
	}
	for len(s.updates) > 0 && s.updates[0].id < offset {
		s.updates = s.updates[1:]
	}
}
