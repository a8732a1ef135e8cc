package backend

import (
	"github.com/outlive-mcp/outlive/internal/jsonrpc"
)

// index finds calls by a raw JSON value of theirs. It is a hash table whose chains run through the calls themselves:
// nothing is allocated per call, and a lookup among few calls touches little memory, which is what counts for the call
// that comes after a pause.
type index struct {
	heads []*call            // a power of two
	n     int                // calls in it
	key   func(*call) *keyed // which of a call's keys
}

// keyed is one key of a call and its place in the index of that key.
type keyed struct {
	raw  []byte // as the client wrote it; empty: not in the index
	hash uint64
	next *call // of the same bucket
}

// fewBuckets is how many buckets an index begins with.
const fewBuckets = 64

func newIndex(key func(*call) *keyed) index {
	return index{heads: make([]*call, fewBuckets), key: key}
}

func (x *index) bucket(hash uint64) **call { return &x.heads[hash&uint64(len(x.heads)-1)] }

// put enters c under raw.
func (x *index) put(c *call, raw []byte) {
	if x.n == len(x.heads) {
		x.rehash(2 * x.n)
	}
	k := x.key(c)
	k.raw, k.hash = append(k.raw[:0], raw...), jsonrpc.HashID(raw)
	x.link(c)
	x.n++
}

func (x *index) link(c *call) {
	k := x.key(c)
	b := x.bucket(k.hash)
	k.next, *b = *b, c
}

func (x *index) rehash(size int) {
	old := x.heads
	x.heads = make([]*call, size)
	for _, c := range old {
		for c != nil {
			next := x.key(c).next
			x.link(c)
			c = next
		}
	}
}

// find returns the call that was entered last under a value that is the same as raw.
func (x *index) find(raw []byte) *call {
	if x.n == 0 {
		return nil
	}
	hash := jsonrpc.HashID(raw)
	for c := *x.bucket(hash); c != nil; c = x.key(c).next {
		if k := x.key(c); k.hash == hash && jsonrpc.SameID(k.raw, raw) {
			return c
		}
	}
	return nil
}

// take takes c out if it is in the index. Its key keeps its buffer.
func (x *index) take(c *call) {
	k := x.key(c)
	if len(k.raw) == 0 {
		return
	}
	at := x.bucket(k.hash)
	for *at != c {
		at = &x.key(*at).next
	}
	*at = k.next
	*k = keyed{raw: k.raw[:0]}
	x.n--
}
