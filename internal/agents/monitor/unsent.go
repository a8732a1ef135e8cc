package monitor

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// Unsent is a message of an incident that has not arrived by a channel, and why.
type Unsent struct {
	Channel string
	Error   string
	Next    time.Time // when it is tried again; zero: it is not
}

// unsent are the messages of incidents that have not arrived, by the incident's id, one for each channel. What waits behind
// a message that fails has that one's error.
func (s *store) unsent(ctx context.Context) (map[string][]Unsent, error) {
	type message struct {
		key, channel, state, err string
		next                     int64
	}
	list, err := query(ctx, s.db, `SELECT key, channel, state, error, not_before FROM outbox_message
		WHERE state <> 'merged' AND error <> 'withdrawn' ORDER BY id`, func(rows *sql.Rows) (m message, err error) {
		return m, rows.Scan(&m.key, &m.channel, &m.state, &m.err, &m.next)
	})
	failing := map[string]Unsent{} // the channel's first message that waits
	last := map[[2]string]message{}
	var order [][2]string
	for _, m := range list {
		waits := m.state == "queued" || m.state == "sending"
		if _, known := failing[m.channel]; waits && !known {
			failing[m.channel] = Unsent{m.channel, m.err, time.UnixMilli(m.next)}
		}
		if rest, of := strings.CutPrefix(m.key, "incident/"); of {
			id, _, _ := strings.Cut(rest, "/")
			at := [2]string{id, m.channel}
			if _, known := last[at]; !known {
				order = append(order, at)
			}
			last[at] = m
		}
	}
	all := map[string][]Unsent{}
	for _, at := range order {
		u := Unsent{at[1], last[at].err, time.Time{}}
		switch state := last[at].state; {
		case state == "sent":
			continue
		case state != "dropped":
			u.Next = time.UnixMilli(last[at].next)
			if f := failing[u.Channel]; u.Error == "" {
				u = f
			}
		}
		if u.Error != "" {
			all[at[0]] = append(all[at[0]], u)
		}
	}
	return all, err
}
