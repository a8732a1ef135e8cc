package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// picky reads a client's lines for a server that was written before clients probed: what comes before initialize ends
// it ("exits", as servers made with rmcp before 3.0 do) or is never answered ("silent").
func picky(in io.Reader, manner string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		greeted := false
		for lines := bufio.NewReader(in); ; {
			line, err := lines.ReadBytes('\n')
			var msg struct{ Method string }
			_ = json.Unmarshal(line, &msg) // what is not a message has no method, so it is not a greeting
			greeted = greeted || msg.Method == "initialize"
			if len(line) > 0 && !greeted && manner == "exits" {
				fmt.Fprintln(os.Stderr, "unexpected request before initialize")
				os.Exit(1)
			}
			if greeted {
				_, _ = w.Write(line) // fails only when the server has ended
			}
			if err != nil {
				_ = w.CloseWithError(err)
				return
			}
		}
	}()
	return r
}
