package monitor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// ErrChanged says that a request was decided on an agent that is not as it was: something was done about it since, or it has another
// process. Nothing was done.
var ErrChanged = errors.New("the agent has changed since this was decided")

// changed is the answer to such a request.
const changed = "nothing is done: the agent has changed since this was decided"

// incarnation is of an agent as it is now. What is done about it makes the next one, and so does another process.
func (r *round) incarnation(c *examined) string {
	last := int64(0)
	for _, rec := range r.ledger.all[c.Key] {
		last = max(last, rec.ID)
	}
	return fmt.Sprintf("%d.%d.%d", last, c.subject.process.PID, c.subject.process.Start)
}

// addOnce writes a request down unless one with its command is there already, and returns the id of the one that is there.
func (s *store) addOnce(ctx context.Context, w userRequest, now time.Time) (id int64, err error) {
	if w.Command == "" {
		return s.addRequest(ctx, w, now)
	}
	err = s.do(ctx, func(tx *sql.Tx) error {
		const find = `SELECT id FROM wish WHERE json_extract(data, '$.command') = ?`
		err := tx.QueryRowContext(ctx, find, w.Command).Scan(&id)
		if !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if err := putWish(ctx, tx, w, now); err != nil {
			return err
		}
		return tx.QueryRowContext(ctx, find, w.Command).Scan(&id)
	})
	return id, err
}
