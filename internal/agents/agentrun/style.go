package agentrun

import (
	"strconv"
	"strings"
)

// style is how a character is drawn: the parameters of SGR that make it so. The zero style is the terminal's own.
type style struct {
	fore, back, under string // colours, such as "31" or "38;5;208"; "": the terminal's own
	styles            uint16 // a bit for each of SGR 1 to 9
}

// change takes the parameters of an SGR sequence.
func (l *style) change(parameters string) {
	list := strings.Split(parameters, ";")
	for len(list) > 0 {
		word := list[0]
		n, err := strconv.Atoi(word)
		whole, sub, _ := strings.Cut(word, ":")
		list = list[1:]
		switch {
		case word == "":
			*l = style{}
		case whole == "4" && sub == "0":
			l.styles &^= 1 << 4
		case whole == "4" && sub != "":
			l.styles |= 1 << 4
		case whole == "38" || whole == "48" || whole == "58":
			var colour string
			if colour, list = extended(word, list); colour != "" {
				*map[string]*string{"38": &l.fore, "48": &l.back, "58": &l.under}[whole] = colour
			}
		case err == nil:
			l.simple(n, word)
		}
	}
}

// extended is a colour of the palette or of red, green and blue, and what follows it.
func extended(word string, list []string) (colour string, rest []string) {
	if strings.Contains(word, ":") {
		if len(word) > 24 {
			return "", list
		}
		return word, list
	}
	n := 0
	if len(list) > 0 {
		n = map[string]int{"5": 2, "2": 4}[list[0]]
	}
	if n == 0 || len(list) < n {
		return "", nil
	}
	for _, part := range list[:n] {
		if v, err := strconv.Atoi(part); err != nil || v < 0 || v > 255 {
			return "", list[n:]
		}
	}
	return word + ";" + strings.Join(list[:n], ";"), list[n:]
}

// simple takes a parameter that stands by itself.
func (l *style) simple(n int, word string) {
	switch {
	case n == 0:
		*l = style{}
	case n <= 9:
		l.styles |= 1 << n
	case n == 21:
		l.styles |= 1 << 4
	case n == 22:
		l.styles &^= 1<<1 | 1<<2
	case n >= 23 && n <= 29:
		l.styles &^= 1 << (n - 20)
	case n >= 30 && n <= 37, n >= 90 && n <= 97:
		l.fore = word
	case n == 39:
		l.fore = ""
	case n >= 40 && n <= 47, n >= 100 && n <= 107:
		l.back = word
	case n == 49:
		l.back = ""
	case n == 59:
		l.under = ""
	}
}

// sequence is what makes a terminal draw so.
func (l style) sequence() string {
	words := []string{"0"}
	for n := 1; n <= 9; n++ {
		if l.styles&(1<<n) != 0 {
			words = append(words, strconv.Itoa(n))
		}
	}
	for _, colour := range []string{l.fore, l.back, l.under} {
		if colour != "" {
			words = append(words, colour)
		}
	}
	return "\x1b[" + strings.Join(words, ";") + "m"
}

// kept is the style as a cell keeps it.
func (l style) kept() *style {
	if l == (style{}) {
		return nil
	}
	kept := l // l itself would be put on the heap also when there is nothing to keep
	return &kept
}
