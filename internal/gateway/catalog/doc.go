// Package catalog merges what many MCP servers list into the one set of lists that clients see: which names are shown,
// in which order, on which pages, and which server a shown name or a URI belongs to.
//
// The way through it: Items reads one raw page of a server's list, a walk's pages make a Lists, and Book.Merge turns the
// Lists of all servers into a View, which answers everything a client asks about lists.
//
// The package is pure: no goroutine, no clock, no I/O. A Book belongs to one goroutine at a time, for as long as names
// must stay what they are: in a gateway, the loop, for its whole life. Server, Item, Lists and View are never changed
// once they were handed over, by neither side, so any goroutine may read them and any number of sessions share them.
// What is equal is held once: Items of the same bytes share them, however many processes listed them, and sessions
// that see the same get the same View.
package catalog
