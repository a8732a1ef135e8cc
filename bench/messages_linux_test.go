package main

import (
	"encoding/json"
	"testing"
)

func TestCallLine(t *testing.T) {
	for _, size := range []int{200, 4 << 10, 64 << 10} {
		line := callLine(size)
		setID(line, firstID+42)
		if len(line) != size || line[size-1] != '\n' || !json.Valid(line) {
			t.Errorf("size %d: %d bytes, valid JSON %t", size, len(line), json.Valid(line))
		}
		if id, ok := answerID(line); !ok || id != firstID+42 {
			t.Errorf("size %d: id %d, %t", size, id, ok)
		}
	}
}

func TestAnswerID(t *testing.T) {
	tests := []struct {
		line string
		id   int
		ok   bool
	}{
		{`{"jsonrpc":"2.0","id":100000007,"result":{}}`, 100000007, true},
		{`{"result":{"id":"x"},"jsonrpc":"2.0","id":100000007}`, 100000007, true},
		{`{"jsonrpc":"2.0","method":"notifications/message"}`, 0, false},
		{`{"jsonrpc":"2.0","id":3,"method":"ping"}`, 3, false},
	}
	for _, test := range tests {
		if id, ok := answerID([]byte(test.line)); id != test.id || ok != test.ok {
			t.Errorf("%s: id %d, %t; want %d, %t", test.line, id, ok, test.id, test.ok)
		}
	}
}
