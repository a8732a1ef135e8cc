package control

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/outlive-mcp/outlive/internal/record/tap"
)

const (
	// messagesEvery is how often what has passed is handed on. The path of a call never wakes anybody up for it.
	messagesEvery = 25 * time.Millisecond
	// messagesPiece is how much is written at once, in bytes.
	messagesPiece = 64 << 10
)

// serveMessages answers with the messages as they pass, one line of JSON each (see [tap.Record]), until the client goes. A reader that
// is too slow misses messages; a line with only "left_out" says how many.
func serveMessages(w http.ResponseWriter, r *http.Request, t *tap.Tap) {
	if t == nil {
		answer(w, http.StatusNotFound, refusal{"with --mode inherit outlive does not see its messages: client and server have one connection"})
		return
	}
	query := r.URL.Query()
	reader := t.Open(tap.Options{Server: query.Get("server"), Bodies: query.Get("bodies") == "1"})
	defer reader.Close()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	every := time.NewTicker(messagesEvery)
	defer every.Stop()
	var batch tap.Batch
	var text []byte
	for {
		over := false
		select {
		case <-r.Context().Done(): // we end, or the reader has gone; what has come is still written
			over = true
		case <-every.C:
		}
		leftOut := reader.Take(&batch)
		for i := range batch.Messages {
			text = append(batch.Messages[i].AppendJSON(text), '\n')
			if len(text) >= messagesPiece {
				if _, err := w.Write(text); err != nil {
					return
				}
				text = text[:0]
			}
		}
		if leftOut > 0 {
			text = append(tap.AppendLeftOut(text, time.Now(), leftOut), '\n')
		}
		if len(text) > 0 {
			if _, err := w.Write(text); err != nil || out.Flush() != nil {
				return
			}
			text = text[:0]
		}
		if over {
			return
		}
	}
}

// Messages hands on each message of the instance as it passes, as a line of JSON that is valid during the call (see [tap.Record]), until
// ctx ends, the instance does, or each returns an error, which is returned. more says that further ones are there already. The error wraps
// [ErrGone] if nobody listens there any more. Of a gateway it is the messages of [Instance.Server], or of all its servers. watching is
// called once messages are no longer missed. With bodies they have what they say, with secrets replaced.
func (i Instance) Messages(ctx context.Context, bodies bool, watching func(), each func(line []byte, more bool) error) error {
	path := "/v1/messages?server=" + url.QueryEscape(i.Server)
	if bodies {
		path += "&bodies=1"
	}
	body, err := i.do(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	defer body.Close()
	watching()
	in := bufio.NewReaderSize(body, messagesPiece)
	for {
		line, err := in.ReadBytes('\n') // of our own user's outlive, and no longer than a message of a server may be
		if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("messages of %s (pid %d): %w", i.Name, i.PID, err)
		}
		if err := each(bytes.TrimSuffix(line, []byte("\n")), in.Buffered() > 0); err != nil {
			return err
		}
	}
}
