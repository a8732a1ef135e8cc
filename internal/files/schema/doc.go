// Package schema checks a file against a table: which keys there are, and what their values look like.
//
// The table of a file is a [Shape]. Three things come from it, so that they never disagree:
//
//   - [Walk.Check] goes over a tree of room tree and its shape together. It tells unknown keys, wrong types, bad values and
//     what is missing, each with its place and with the word that was probably meant;
//   - [Shape.JSON] is its JSON Schema, and [Document] writes one as a file, for editors;
//   - a shape may take what was good to where it belongs ([Shape.Take]), so that a table is also the reader of its file.
//
// What a text has to look like is a [Form]. What is a file's own stays in its table: what stands for a reference
// ([Walk.Fill]), what its texts look like, what several values have to be together.
//
// A table is data until a file is read. There is no goroutine, and a Walk belongs to whoever made it.
package schema
