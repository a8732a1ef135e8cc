// Package schema checks a file against a table that says which keys there are, and what their values look like.
//
// The table of a file is a [Shape]. It has three uses, which therefore always agree:
//
//   - [Walk.Check] walks a tree and its shape together. It reports unknown keys, wrong types, bad values and
//     missing keys, each with its position and with the word that was probably meant;
//   - [Shape.JSON] is its JSON Schema, and [Document] writes one as a file, for editors;
//   - a shape may store the valid values ([Shape.Take]), so that a table is also the reader of its file.
//
// The form of a text is a [Form]. What is specific to a file is in its table: how references are replaced
// ([Walk.Fill]), the forms of its texts, conditions on several values.
//
// A table is only data until a file is read. There is no goroutine. A Walk is not synchronised; it belongs to the
// goroutine that made it.
package schema
