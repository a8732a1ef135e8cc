package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// InstructionBytes is how long merged instructions are at most: clients put them into every conversation.
const InstructionBytes = 16 << 10

// cut ends a text that is not there to its end.
const cut = "…"

// Instructions merges what servers say about themselves, texts[i] being servers[i]'s, under a heading for each that says
// something. Where every name is prefixed the heading says so, because the text knows the server's own names only. What
// is longer than InstructionBytes is cut, the longest texts first, so that no server silences the others; only where not
// even the headings fit are the last servers left out. "" if none says anything.
func Instructions(names Names, servers []Server, texts []string) string {
	var heads, bodies []string
	used := 0 // by the headings, and by what is the least of each text
	for i, text := range texts {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		head := heading(names, servers[i])
		if len(heads) > 0 {
			head = "\n\n" + head
		}
		if used+len(head)+len(cut) > InstructionBytes {
			break
		}
		used += len(head) + len(cut)
		heads, bodies = append(heads, head), append(bodies, text)
	}
	most := share(bodies, InstructionBytes-used+len(bodies)*len(cut))
	var out strings.Builder
	for i, body := range bodies {
		out.WriteString(heads[i])
		out.WriteString(shorten(body, most))
	}
	return out.String()
}

func heading(names Names, server Server) string {
	if names == OnCollision || names == Never {
		return fmt.Sprintf("# %s\n\n", server.Name)
	}
	return fmt.Sprintf("# %s\n\nThe names of its tools and prompts begin with %s_ here.\n\n", server.Name, clean(server.prefix()))
}

// share is the length to which every text may go if all together are to have at most room bytes.
func share(texts []string, room int) int {
	lengths := make([]int, len(texts))
	for i, text := range texts {
		lengths[i] = len(text)
	}
	slices.Sort(lengths)
	for i, length := range lengths { // those that need less than an equal share leave the rest to others
		if each := room / (len(lengths) - i); length > each {
			return each
		}
		room -= length
	}
	return InstructionBytes
}

// shorten cuts text to most bytes, between two characters.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := most - len(cut)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + cut
}
