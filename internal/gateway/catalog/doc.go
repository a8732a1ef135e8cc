// Package catalog merges the lists of many MCP servers into the one set of lists that clients see: which names are
// shown, in which order, on which pages, and which server a shown name or a URI belongs to.
//
// Items reads one raw page of a server's list; the pages together make a Lists; Catalog.Merge merges the Lists of all
// servers, or what a Selection has of them, into a View, which answers everything a client asks about lists.
//
// The package is pure: no goroutine, no clock, no I/O. A Catalog belongs to one goroutine at a time, for as long as
// names must be kept: in a gateway the loop, for its whole life. Server, Item, Lists and View are immutable once they
// were passed on, so any goroutine may read them and any number of sessions share them. Equal data is stored once:
// Items of the same bytes share their memory, however many processes listed them, and sessions that see the same get
// the same View.
package catalog
