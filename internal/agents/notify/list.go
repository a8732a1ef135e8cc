package notify

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

const (
	// gatherTime is how long a message waits for others of its kind, which may come at the same moment.
	gatherTime = time.Second
	// listMost is how many messages become one. With two buttons each they stay below Telegram's 100.
	listMost = 45
)

// Line is a message as a part of a list. Those of one kind that wait for a [Paced] channel become one message, which is
// changed when one of them changes.
type Line struct {
	Kind    string   `json:"kind"`              // of those that belong together; "": it is always a message of its own
	Mark    string   `json:"mark,omitempty"`    // before the title
	Title   string   `json:"title,omitempty"`   // what is so of each, behind their number
	Text    string   `json:"text,omitempty"`    // the line
	Note    string   `json:"note,omitempty"`    // below the list
	Over    bool     `json:"over,omitempty"`    // the title is not so of it any more
	Buttons []Button `json:"buttons,omitempty"` // of this line
}

// part is a message that is looked at together with others.
type part struct {
	id      int64
	waits   bool // it is not sent yet
	message Message
}

// Those of a kind that wait, and are no change of what was sent.
const waitingAlike = `SELECT id, 1, message FROM outbox_message AS m WHERE channel = ? AND state IN ('queued', 'sending') AND plain = 0
	AND json_extract(message, '$.line.kind') = ?
	AND NOT EXISTS (SELECT 1 FROM outbox_message AS s WHERE s.channel = m.channel AND s.thread = m.thread AND s.thread <> '' AND s.state = 'sent')
	ORDER BY id LIMIT ?`

// The newest state of each thread that a message shows.
const shownTogether = `SELECT id, state = 'queued', message FROM outbox_message AS m WHERE channel = ? AND state IN ('queued', 'sent')
	AND thread IN (SELECT thread FROM outbox_message AS s WHERE s.channel = m.channel AND s.ref = ? AND s.thread <> '')
	AND id = (SELECT max(id) FROM outbox_message AS s WHERE s.channel = m.channel AND s.thread = m.thread AND s.state IN ('queued', 'sent'))
	ORDER BY (SELECT min(id) FROM outbox_message AS s WHERE s.channel = m.channel AND s.thread = m.thread) LIMIT ?`

func partsOf(ctx context.Context, tx *sql.Tx, query string, args ...any) (list []part, err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p part
		var text string
		if err := rows.Scan(&p.id, &p.waits, &text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(text), &p.message); err != nil {
			return nil, fmt.Errorf("message %d: %w", p.id, err)
		}
		list = append(list, p)
	}
	return list, errors.Join(rows.Err(), rows.Close())
}

// listed makes the message a list: with those that are shown together with it or, if it is not shown yet, wait like it.
func (l *lane) listed(ctx context.Context, tx *sql.Tx, e entry) (entry, error) {
	if _, paced := l.channel.(Paced); !paced || e.message.Line.Kind == "" {
		return e, nil
	}
	limit := l.limit() - len(again)
	var list []part
	var err error
	switch {
	case e.ref != "":
		list, err = partsOf(ctx, tx, shownTogether, l.name, e.ref, listMost)
	case e.told || e.plain: // it follows a message that cannot be changed, or was rejected in a list
		return e, nil
	default:
		e.fresh = true
		list, err = partsOf(ctx, tx, waitingAlike, l.name, e.message.Line.Kind, listMost)
		list = fitting(list, limit)
	}
	if err != nil || len(list) < 2 {
		return e, err
	}
	for _, p := range list {
		if p.waits && p.id != e.id {
			e.others = append(e.others, p.id)
		}
	}
	e.message = combined(e.message, list, limit)
	return e, nil
}

// gathered is until when a message waits for others of its kind; zero: it does not.
func (l *lane) gathered(e entry, now time.Time) time.Time {
	switch {
	case !e.fresh || e.tries > 0 || e.unsure:
		l.gathers = time.Time{}
	case l.gathers.IsZero():
		l.gathers = now.Add(gatherTime)
	}
	return l.gathers
}

// fitting is the beginning of a list that fits into one message.
func fitting(list []part, limit int) []part {
	for n := len(list); n > 1; n-- {
		if text, _ := listText(list[:n]); units(text.Body) <= limit {
			return list[:n]
		}
	}
	return nil
}

// combined is m as the list of all, of at most limit UTF-16 code units. A line that is not shown in full has no buttons.
func combined(m Message, list []part, limit int) Message {
	m.Line, m.Exact, m.Buttons = Line{}, "", nil
	text, ends := listText(list)
	m.Text = text.Fit(limit)
	shown := len(m.Text.Body)
	if units(text.Body) > limit {
		shown -= len(more)
	}
	for i, p := range list {
		if row := p.message.row(); len(row) > 0 && ends[i] <= shown {
			m.Buttons = append(m.Buttons, row)
		}
	}
	return m
}

// unproven ends a line without the button that needs all of it.
const unproven = " (it cannot be allowed from here)"

// listText is a list with its heading, and where each line ends in it.
func listText(list []part) (t Text, ends []int) {
	line := list[0].message.Line
	open := 0
	for _, p := range list {
		if one := p.message.Line; !one.Over {
			if open == 0 {
				line = one
			}
			open++
		}
	}
	switch n := len(list); open {
	case n:
		t.WriteBold(fmt.Sprintf("%s %d %s", line.Mark, n, line.Title))
	case 0:
		t.WriteBold(fmt.Sprintf("⚪ Over: %d %s", n, line.Title))
	default:
		t.WriteBold(fmt.Sprintf("%s %d of %d %s", line.Mark, open, n, line.Title))
	}
	t.Write("\n")
	for _, p := range list {
		t.Write("\n• " + p.message.Line.Text)
		if len(p.message.row()) < len(p.message.Line.Buttons) {
			t.Write(unproven)
		}
		ends = append(ends, len(t.Body))
	}
	if line.Note != "" {
		t.Write("\n\n" + line.Note)
	}
	return t, ends
}

// row is the message's buttons in a list, without those that need more than its line shows.
func (m Message) row() (row []Button) {
	for _, b := range m.Line.Buttons {
		if !b.NeedsExact || m.Exact != "" && strings.Contains(m.Line.Text, m.Exact) {
			row = append(row, b)
		}
	}
	return row
}
