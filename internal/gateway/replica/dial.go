package replica

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"
)

// nextCore is how long an answer of one core is waited for until another one is tried, too.
const nextCore = 250 * time.Millisecond

// DialAny connects to whichever of several cores takes it: one of them has the sessions, the others do not listen. They are tried in
// this order. The error of them all has a part for each, and wraps [ErrSecret] if all of them have another secret: where only some have,
// the others may come back.
func (l *Link) DialAny(ctx context.Context, addresses []string) (conn net.Conn, at string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		conn net.Conn
		at   string
		err  error
	}
	came := make(chan outcome)
	waiting, failed := 0, make(map[string]error)
	next := time.NewTimer(0)
	defer next.Stop()
	for rest := slices.Clone(addresses); waiting > 0 || len(rest) > 0; {
		select {
		case <-next.C:
			if len(rest) == 0 {
				continue
			}
			one := rest[0]
			rest = rest[1:]
			waiting++
			go func() {
				conn, err := l.Dial(ctx, one)
				select {
				case came <- outcome{conn, one, err}:
				case <-ctx.Done():
					if err == nil {
						_ = conn.Close() // another one was first
					}
				}
			}()
			next.Reset(nextCore)
		case o := <-came:
			waiting--
			if o.err == nil {
				return o.conn, o.at, nil
			}
			failed[o.at] = o.err
			next.Reset(0)
		case <-ctx.Done():
			return nil, "", ctx.Err()
		}
	}
	return nil, "", noCore(addresses, failed)
}

// noCore is the error of cores none of which could be reached.
func noCore(addresses []string, failed map[string]error) error {
	if len(addresses) == 1 {
		return failed[addresses[0]]
	}
	all := coreErrors{}
	for _, at := range addresses {
		all = append(all, failed[at])
	}
	return fmt.Errorf("no core takes connections: %w", all)
}

// AnotherSecret reports whether one core at least has another secret, by an error of [Link.DialAny].
func AnotherSecret(err error) bool {
	var several coreErrors
	if errors.As(err, &several) {
		return slices.ContainsFunc(several, func(one error) bool { return errors.Is(one, ErrSecret) })
	}
	return errors.Is(err, ErrSecret)
}

// coreErrors are one error for each core, on one line.
type coreErrors []error

// Error implements error.
func (e coreErrors) Error() string {
	texts := make([]string, len(e))
	for n, err := range e {
		texts[n] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Is implements what [errors.Is] asks for.
func (e coreErrors) Is(target error) bool {
	return !slices.ContainsFunc(e, func(err error) bool { return !errors.Is(err, target) })
}
