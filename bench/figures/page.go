package figures

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrMarkers means that a page has one of a section's two markers only, or both in the wrong order.
var ErrMarkers = errors.New("the page has lost one of its markers")

// WriteSection puts body between the section's markers in the page at path, which gets them at its end if it has none.
// Where they are broken it returns ErrMarkers and leaves the page as it is.
func WriteSection(path, name, body string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	text, err := placeSection(string(page), name, body)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", path, name, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// placeSection puts body between the markers <!-- name:begin --> and <!-- name:end --> of page, or at its end between new ones;
// what stands outside is the author's.
func placeSection(page, name, body string) (string, error) {
	begin, end := "<!-- "+name+":begin -->", "<!-- "+name+":end -->"
	before, rest, opened := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	switch {
	case opened && closed:
		return before + begin + "\n" + wrapped(body) + end + after, nil
	case strings.Contains(page, begin) || strings.Contains(page, end):
		return "", ErrMarkers
	}
	return strings.TrimRight(page, "\n") + "\n\n" + begin + "\n" + wrapped(body) + end + "\n", nil
}

// lineWidth is how many characters a line of a page has at most, but for tables and code.
const lineWidth = 140

// wrapped breaks lines of running text that are longer, at blanks.
func wrapped(text string) string {
	var out strings.Builder
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		rest := []rune(line)
		for !code && !strings.HasPrefix(line, "|") && len(rest) > lineWidth+1 { // the last one ends the line
			at := lineWidth
			for at > 0 && rest[at] != ' ' {
				at--
			}
			if at == 0 {
				break
			}
			out.WriteString(string(rest[:at]) + "\n")
			rest = rest[at+1:]
		}
		out.WriteString(string(rest))
	}
	return out.String()
}
