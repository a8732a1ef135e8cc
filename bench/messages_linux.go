package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Ids have a fixed width, so that a line can be reused by overwriting its id.
const (
	firstID = 100_000_000
	idAt    = len(callHead)
	idWidth = 9
)

const (
	callHead = `{"jsonrpc":"2.0","id":`
	callBody = `,"method":"tools/call","params":{"name":"echo","arguments":{"message":"`
	callTail = `"}}}` + "\n"
)

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"

// initializeLine opens the connection the way a client of the last handshake
// era does.
func initializeLine(id int) string {
	return fmt.Sprintf(callHead+`%d,"method":"initialize","params":{"protocolVersion":"2025-06-18",`+
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`+"\n", id)
}

// listLine asks for the tools: the cheapest request that every tool server
// answers and that may always be asked again.
func listLine(id int) string {
	return fmt.Sprintf(callHead+`%d,"method":"tools/list","params":{}}`+"\n", id)
}

// callLine is one echo call of exactly size bytes, newline included, or of the
// smallest size there is.
func callLine(size int) []byte {
	padding := max(size-len(callHead)-idWidth-len(callBody)-len(callTail), 0)
	return []byte(callHead + strconv.Itoa(firstID) + callBody + strings.Repeat("x", padding) + callTail)
}

// setID overwrites the id of a line made by callLine.
func setID(line []byte, id int) {
	for i := idAt + idWidth - 1; i >= idAt; i-- {
		line[i] = byte('0' + id%10)
		id /= 10
	}
}

// answerID reads the id from the beginning of an answer. The common form, id
// second, is read in place; any other order goes by a search. ok is false for a
// notification or an id that is not the client's.
func answerID(head []byte) (id int, ok bool) {
	at := len(callHead)
	if !bytes.HasPrefix(head, []byte(callHead)) {
		key := bytes.LastIndex(head, []byte(`"id":`))
		if key < 0 {
			return 0, false
		}
		at = key + len(`"id":`)
	}
	for ; at < len(head) && head[at] >= '0' && head[at] <= '9'; at++ {
		id = id*10 + int(head[at]-'0')
	}
	return id, id >= firstID
}
