package config

import "strings"

// parseDotenv reads an envFile as VS Code and Cursor do: NAME=value, optionally after export, # for comments,
// optional quotes around values. Other lines are ignored, as in both clients.
func parseDotenv(data []byte) map[string]string {
	env := map[string]string{}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		name, value, ok := strings.Cut(line, "=")
		name = strings.TrimSpace(name)
		if !ok || name == "" || strings.ContainsAny(name, " \t#\"'\x00") {
			continue
		}
		value = strings.TrimSpace(value)
		if value != "" && strings.IndexByte("\"'`", value[0]) >= 0 {
			q := value[0]
			if end := strings.IndexByte(text, q); end >= 0 && strings.IndexByte(value[1:], q) < 0 { // several lines
				value += "\n" + text[:end+1]
				_, text, _ = strings.Cut(text[end+1:], "\n")
			}
			value = unquoted(value, q)
		} else if i := strings.Index(value, " #"); i >= 0 {
			value = strings.TrimSpace(value[:i])
		}
		if !strings.ContainsRune(value, 0) {
			env[name] = value
		}
	}
	return env
}

// unquoted takes what stands between quotes. Double quotes know \n and \r; a value that is not closed is taken as it is.
func unquoted(value string, q byte) string {
	end := strings.IndexByte(value[1:], q)
	if end < 0 {
		return value
	}
	value = value[1 : 1+end]
	if q == '"' {
		value = strings.NewReplacer(`\n`, "\n", `\r`, "\r").Replace(value)
	}
	return value
}
