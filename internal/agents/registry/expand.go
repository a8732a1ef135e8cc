package registry

import (
	"fmt"
	"strings"

	"github.com/outlive-mcp/outlive/internal/files/lazyregexp"
)

var reference = lazyregexp.New(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Expand replaces the references ${NAME} in a channel's address or in the deadman's URL. lookup returns the values; a
// name that it does not know is an error, which contains the name and no value.
func Expand(text string, lookup func(name string) (string, bool)) (string, error) {
	var missing []string
	filled := reference.ReplaceAllStringFunc(text, func(match string) string {
		name := match[2 : len(match)-1]
		value, ok := lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		return value
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("fill in ${%s}: it is not set", strings.Join(missing, "}, ${"))
	}
	return filled, nil
}

// checkReferences reports a ${ that [Expand] would not replace.
func checkReferences(text string) (message, hint string) {
	if rest := reference.ReplaceAllString(text, ""); strings.Contains(rest, "${") {
		return "has a reference that is none", "write ${NAME}, with letters, digits and underscores"
	}
	return "", ""
}

// Variables returns the names of the variables that channels and the deadman's URL refer to.
func (r *Registry) Variables() []string {
	texts := []string{r.Deadman.URL}
	for _, c := range r.Channels {
		texts = append(texts, c.Address)
	}
	var names []string
	for _, match := range reference.FindAllStringSubmatch(strings.Join(texts, "\n")) {
		names = append(names, match[1])
	}
	return names
}
