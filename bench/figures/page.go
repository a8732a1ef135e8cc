package figures

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// ErrMarkers means that a page has one of a section's two markers only, or both in the wrong order.
var ErrMarkers = errors.New("the page has lost one of its markers")

// RewritePage replaces the page at path by what edit makes of it. Where there is no page edit gets fresh; with fresh
// empty, that is an error. An error of edit leaves the page as it is.
func RewritePage(path, fresh string, edit func(page string) (string, error)) error {
	page, err := os.ReadFile(path)
	if fresh != "" && errors.Is(err, fs.ErrNotExist) {
		page, err = []byte(fresh), nil
	}
	if err != nil {
		return fmt.Errorf("read page: %w", err)
	}
	text, err := edit(string(page))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// WriteSection puts body between the section's markers in the page at path, which gets them at its end if it has none.
// Where they are broken it returns ErrMarkers and leaves the page as it is.
func WriteSection(path, name, body string) error {
	return RewritePage(path, "", func(page string) (string, error) {
		text, err := placeSection(page, name, body)
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		return text, nil
	})
}

func placeSection(page, name, body string) (string, error) {
	if text, ok := ReplaceSection(page, name, body); ok {
		return text, nil
	}
	if begin, end := markers(name); strings.Contains(page, begin) || strings.Contains(page, end) {
		return "", ErrMarkers
	}
	return AppendSection(page, name, body), nil
}

// ReplaceSection puts body between the markers <!-- name:begin --> and <!-- name:end --> of page; what stands outside is
// the author's. It returns false when page has not both of them, in this order.
func ReplaceSection(page, name, body string) (string, bool) {
	begin, end := markers(name)
	before, rest, opened := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", false
	}
	return before + begin + "\n" + body + end + after, true
}

// AppendSection puts body at the end of page, between new markers.
func AppendSection(page, name, body string) string {
	begin, end := markers(name)
	return strings.TrimRight(page, "\n") + "\n\n" + begin + "\n" + body + end + "\n"
}

func markers(name string) (begin, end string) {
	return "<!-- " + name + ":begin -->", "<!-- " + name + ":end -->"
}
