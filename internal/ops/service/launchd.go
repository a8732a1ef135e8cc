package service

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// LaunchdLabel is how launchd calls a service.
func LaunchdLabel(name string) string { return "io.github.outlive-mcp." + name }

// Launchd is a service's property list for launchd, as an agent of the user.
func Launchd(s Service) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString(xml.Header)
	b.WriteString("<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n")
	fmt.Fprintf(&b, "<!-- %s -->\n", strings.ReplaceAll(escaped(s.About), "--", "- -"))
	b.WriteString("<plist version=\"1.0\">\n<dict>\n")
	key := func(name string) { fmt.Fprintf(&b, "\t<key>%s</key>\n", escaped(name)) }
	text := func(indent, value string) { fmt.Fprintf(&b, "%s<string>%s</string>\n", indent, escaped(value)) }
	key("Label")
	text("\t", LaunchdLabel(s.Name))
	key("ProgramArguments")
	b.WriteString("\t<array>\n")
	for _, word := range s.Command {
		text("\t\t", word)
	}
	b.WriteString("\t</array>\n")
	if len(s.Environ) > 0 {
		key("EnvironmentVariables")
		b.WriteString("\t<dict>\n")
		for _, kv := range s.Environ {
			name, value, _ := strings.Cut(kv, "=")
			b.WriteString("\t")
			key(name)
			text("\t\t", value)
		}
		b.WriteString("\t</dict>\n")
	}
	for _, name := range []string{"RunAtLoad", "KeepAlive"} {
		key(name)
		b.WriteString("\t<true/>\n")
	}
	if s.Keeps { // launchd would end the program's whole group with it
		key("AbandonProcessGroup")
		b.WriteString("\t<true/>\n")
	}
	key("ThrottleInterval")
	b.WriteString("\t<integer>10</integer>\n")
	key("ProcessType") // launchd slows down the disk and the processor of others
	text("\t", "Interactive")
	if s.Log != "" {
		for _, name := range []string{"StandardOutPath", "StandardErrorPath"} {
			key(name)
			text("\t", s.Log)
		}
	}
	b.WriteString("</dict>\n</plist>\n")
	return []byte(b.String()), nil
}

func escaped(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
