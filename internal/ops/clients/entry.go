package clients

import (
	"fmt"
)

// document is a parsed file: its servers, and where in the text an edit of each one goes.
type document struct {
	text    []byte
	entries []entry
	quote   func(string) string // a string as the format writes it
	// gateway writes an entry that starts argv, in the place and in the style of the entry given.
	gateway func(like entry, name string, argv []string) string
}

// entry is a server and its places in the text.
type entry struct {
	Server
	command span // the value, with its quotes
	args    *list

	// A missing member "args" is written at addAt between addBefore and addAfter; one that is there goes with remove.
	addAt               int
	addBefore, addAfter string
	remove              span

	// place is the whole entry for a move to another file; object is the index of the object it stands in.
	place  []span
	object int
	commas commas
	// fixed says why the entry cannot be moved whole, "" when it can.
	fixed string
}

// commas tells what goes with an entry when it is taken out of a comma-separated list.
type commas struct {
	listed bool
	before int // offset behind the comma or brace before it
	after  int // offset of the comma behind it, -1: none
}

// list is an array of strings in the text.
type list struct {
	open  int // offset of the bracket
	items []item
}

type item struct {
	at    span // with its quotes
	text  string
	comma int // offset of the comma behind it, -1: none
}

// parse reads a file of the client.
func (c *Client) parse(text []byte) (*document, error) {
	if c.format == TOML {
		return parseTOML(text, c.objects)
	}
	return parseJSON(text, c.objects)
}

// Servers returns the servers that a file of the client names, in their order. Entries that are no server have Odd set.
func (c *Client) Servers(text []byte) ([]Server, error) {
	doc, err := c.parse(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.Title, err)
	}
	servers := make([]Server, len(doc.entries))
	for i, e := range doc.entries {
		servers[i] = e.Server
	}
	return servers, nil
}
