package service

import (
	"fmt"
	"strings"
	"unicode/utf16"
)

// Task is a service as a task of Windows' Task Scheduler, begun when user logs on or the task is created, and again within a minute
// when it has ended: the scheduler tries to start it each minute, and ignores that while it runs. (RestartOnFailure is for a start
// that fails; 255 is the highest Count that its schema allows.) user is DOMAIN\name; "": whoever creates
// it. The scheduler sets no environment: what a service needs beyond the user's own has to be in that.
//
// The text is UTF-8 for people; the scheduler wants [UTF16].
func Task(s Service, user string) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	var arguments []string
	for _, word := range s.Command[1:] {
		arguments = append(arguments, windowsQuoted(word))
	}
	who := ""
	if user != "" {
		who = fmt.Sprintf("\n      <UserId>%s</UserId>", escaped(user))
	}
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>%s</Description>
  </RegistrationInfo>
  <Triggers>
%s  </Triggers>
  <Principals>
    <Principal id="Author">%s
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>5</Priority>
    <RestartOnFailure>
      <Interval>PT1M</Interval>
      <Count>255</Count>
    </RestartOnFailure>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>%s</Command>
      <Arguments>%s</Arguments>
    </Exec>
  </Actions>
</Task>
`, escaped(s.About), fmt.Sprintf(triggers, who), who, escaped(s.Command[0]), escaped(strings.Join(arguments, " "))), nil
}

// triggers have the scheduler start a task each minute from the user's logon on, and from now on.
const triggers = `    <LogonTrigger>
      <Repetition>
        <Interval>PT1M</Interval>
        <StopAtDurationEnd>false</StopAtDurationEnd>
      </Repetition>
      <Enabled>true</Enabled>%s
    </LogonTrigger>
    <RegistrationTrigger>
      <Repetition>
        <Interval>PT1M</Interval>
        <StopAtDurationEnd>false</StopAtDurationEnd>
      </Repetition>
      <Enabled>true</Enabled>
    </RegistrationTrigger>
`

// UTF16 is a task's text as the scheduler reads it: little-endian, with a byte order mark.
func UTF16(text []byte) []byte {
	b := []byte{0xff, 0xfe}
	s := strings.NewReplacer("\n", "\r\n", `encoding="UTF-8"`, `encoding="UTF-16"`).Replace(string(text))
	for _, unit := range utf16.Encode([]rune(s)) {
		b = append(b, byte(unit), byte(unit>>8))
	}
	return b
}

// windowsQuoted is one argument as programs on Windows split their command line.
func windowsQuoted(word string) string {
	if word != "" && !strings.ContainsAny(word, " \t\"") {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	slashes := 0
	for _, c := range []byte(word) {
		switch c {
		case '\\':
			slashes++
		case '"': // the backslashes before a quote count double
			b.WriteString(strings.Repeat(`\`, slashes+1))
			slashes = 0
		default:
			slashes = 0
		}
		b.WriteByte(c)
	}
	b.WriteString(strings.Repeat(`\`, slashes))
	b.WriteByte('"')
	return b.String()
}
