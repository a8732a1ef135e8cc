package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// InstructionBytes is the maximum length of merged instructions: clients put them into every conversation.
const InstructionBytes = 16 << 10

// cut marks the end of a shortened text.
const cut = "…"

// Instructions merges the instructions of the servers, texts[i] being those of servers[i], each under a heading.
// Where every name is prefixed the heading says so, because a server's text contains its own names without the
// prefix. What exceeds InstructionBytes is cut, the longest texts first, so that every server keeps a part; only if
// the headings alone do not fit are the last servers left out. "" if all texts are empty.
func Instructions(names Names, servers []Server, texts []string) string {
	var heads, bodies []string
	used := 0 // by the headings and the minimum length of each text
	for i, text := range texts {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		head := fmt.Sprintf("# %s\n\n", servers[i].Name)
		if names != OnCollision && names != Never {
			head += fmt.Sprintf("The names of its tools and prompts begin with %s_ here.\n\n", Clean(servers[i].prefix()))
		}
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

// share is the maximum length of each text if all together may have room bytes.
func share(texts []string, room int) int {
	lengths := make([]int, len(texts))
	for i, text := range texts {
		lengths[i] = len(text)
	}
	slices.Sort(lengths)
	for i, length := range lengths { // what short texts do not need is available to the others
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
