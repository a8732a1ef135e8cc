package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Notifier tells systemd how this program is: sd_notify(3). Every method of a nil Notifier does nothing, so that whoever was
// not started by systemd needs no second way. It may be used by several goroutines.
type Notifier struct {
	socket   string
	watchdog time.Duration
	send     func(socket, text string) error

	mu    sync.Mutex
	alive time.Time // when it was said last
}

// NewNotifier makes a Notifier of what systemd has put into the environment. It is nil where there is nobody to tell.
func NewNotifier(getenv func(string) string) (*Notifier, error) {
	socket, interval, whose := getenv("NOTIFY_SOCKET"), getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")
	if socket == "" {
		return nil, nil
	}
	if socket[0] != '/' && socket[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET=%s: neither a path nor an abstract socket", socket)
	}
	n := &Notifier{socket: socket, send: sendDatagram}
	if interval == "" || whose != "" && whose != strconv.Itoa(os.Getpid()) { // without a number it is for whoever reads it
		return n, nil
	}
	usec, err := strconv.ParseInt(interval, 10, 64)
	if err != nil || usec <= 0 || usec > int64(365*24*time.Hour/time.Microsecond) {
		return nil, fmt.Errorf("WATCHDOG_USEC=%s: must be greater than 0", interval)
	}
	n.watchdog = time.Duration(usec) * time.Microsecond
	return n, nil
}

// Ready says that the program does its work from now on.
func (n *Notifier) Ready(status string) error {
	return n.tell("READY=1\nSTATUS=" + strings.ReplaceAll(status, "\n", " "))
}

// Alive says at now that the loop which does the work has come round. It is said on as often as the watchdog needs it, however
// often it is called. Only that loop may call it: a timer's word would hide its death.
func (n *Notifier) Alive(now time.Time) error {
	if n == nil || n.watchdog == 0 {
		return nil
	}
	n.mu.Lock()
	// A quarter: with the next call a quarter later at most, half is kept.
	if since := now.Sub(n.alive); since >= 0 && since < n.watchdog/4 {
		n.mu.Unlock()
		return nil
	}
	n.alive = now
	n.mu.Unlock()
	return n.tell("WATCHDOG=1")
}

// Stopping says that the program is about to end.
func (n *Notifier) Stopping() error { return n.tell("STOPPING=1") }

func (n *Notifier) tell(text string) error {
	if n == nil {
		return nil
	}
	return n.send(n.socket, text)
}

// sendTime bounds the wait for systemd to take a datagram: a watched program must not hang for its watcher.
const sendTime = time.Second

func sendDatagram(socket, text string) error {
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	err = conn.SetWriteDeadline(time.Now().Add(sendTime))
	if err == nil {
		_, err = conn.Write([]byte(text))
	}
	if err = errors.Join(err, conn.Close()); err != nil {
		return fmt.Errorf("tell systemd: %w", err)
	}
	return nil
}
