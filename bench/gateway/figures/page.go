package figures

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ErrMarkers means that a page has one of two markers only.
var ErrMarkers = errors.New("the page has lost one of its markers")

// WriteSection puts body between the markers <!-- name:begin --> and <!-- name:end --> of a page, which gets them at its
// end if it has none. What stands outside is the author's.
func WriteSection(path, name, body string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	text, err := replaceSection(string(page), name, body)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", path, name, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func replaceSection(page, name, body string) (string, error) {
	begin, end := "<!-- "+name+":begin -->", "<!-- "+name+":end -->"
	before, rest, found := strings.Cut(page, begin)
	if !found {
		if strings.Contains(page, end) {
			return "", ErrMarkers
		}
		return strings.TrimRight(page, "\n") + "\n\n" + begin + "\n" + body + end + "\n", nil
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", ErrMarkers
	}
	return before + begin + "\n" + body + end + after, nil
}
