package agentrun

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// DetachKeys are keys that, pressed one after the other, leave a joined terminal. Each is a control character or a printable
// ASCII character.
type DetachKeys []byte

// defaultDetach is Ctrl-\.
var defaultDetach = DetachKeys{0x1c}

// ParseDetachKeys reads keys with commas between them, as docker attach takes them: ctrl-\, or ctrl-p,ctrl-q, or a. "": the
// default, ctrl-\.
func ParseDetachKeys(text string) (DetachKeys, error) {
	if text == "" {
		return defaultDetach, nil
	}
	var keys DetachKeys
	for word := range strings.SplitSeq(text, ",") {
		letter, control := strings.CutPrefix(strings.ToLower(word), "ctrl-")
		if !control {
			letter = word
		}
		switch {
		case len(letter) != 1:
			return nil, fmt.Errorf("%q is not a key: want ctrl- and a letter or one of @ [ \\ ] ^ _, or a single character", word)
		case control && (letter[0] >= 'a' && letter[0] <= 'z' || strings.Contains(`@[\]^_`, letter)):
			keys = append(keys, letter[0]&0x1f)
		case !control && letter[0] > ' ' && letter[0] < 0x7f:
			keys = append(keys, letter[0])
		default:
			return nil, fmt.Errorf("%q is not a key: want ctrl- and a letter or one of @ [ \\ ] ^ _, or a single character", word)
		}
	}
	return keys, nil
}

// String names the keys for people, such as Ctrl-\ or Ctrl-P Ctrl-Q.
func (k DetachKeys) String() string {
	if len(k) == 0 {
		k = defaultDetach
	}
	var words []string
	for _, c := range k {
		if c < ' ' {
			words = append(words, "Ctrl-"+string(rune(c|0x40)))
		} else {
			words = append(words, string(rune(c)))
		}
	}
	return strings.Join(words, " ")
}

// detachScanner looks for the detach keys in typed input. A possible beginning is held back until the next key.
type detachScanner struct {
	keys DetachKeys
	held [][]byte // the keys that were pressed and fit so far, as they came
	half []byte   // an escape sequence that has not come whole
}

// read takes typed input and returns what is for the agent; left: the keys were pressed, and what follows is dropped.
func (l *detachScanner) read(b []byte) (pass []byte, left bool) {
	b = append(l.half, b...)
	l.half = nil
	for len(b) > 0 {
		n, key, whole := nextKey(b)
		if !whole {
			l.half = bytes.Clone(b)
			return pass, false
		}
		raw := b[:n]
		b = b[n:]
		if key != l.keys[len(l.held)] {
			for _, h := range l.held {
				pass = append(pass, h...)
			}
			if l.held = nil; key != l.keys[0] {
				pass = append(pass, raw...)
				continue
			}
		}
		if l.held = append(l.held, bytes.Clone(raw)); len(l.held) == len(l.keys) {
			return pass, true
		}
	}
	return pass, false
}

// nextKey is the length of the next key, and which of [DetachKeys] it is; 0xff: another one. Ctrl and a letter come as a
// control character, or, if the agent has enabled that, as CSI u (kitty) or CSI 27 (xterm).
func nextKey(b []byte) (n int, key byte, whole bool) {
	if b[0] != esc || len(b) == 1 || b[1] != '[' {
		return 1, b[0], true
	}
	for i := 2; i < len(b); i++ {
		if c := b[i]; c >= 0x40 && c <= 0x7e {
			return i + 1, keyOf(string(b[2:i]), c), true
		} else if c < 0x20 || i > csiLimit {
			return i, 0xff, true
		}
	}
	if len(b) == 2 {
		return 2, 0xff, true // Alt and [
	}
	return 0, 0, false
}

func keyOf(parameters string, final byte) byte {
	parts := strings.Split(parameters, ";")
	var code, modifiers string
	switch {
	case final == 'u' && len(parts) >= 2: // code[:others] ; modifiers[:event]
		code, modifiers = parts[0], parts[1]
	case final == '~' && len(parts) == 3 && parts[0] == "27": // 27 ; modifiers ; code
		code, modifiers = parts[2], parts[1]
	default:
		return 0xff
	}
	code, _, _ = strings.Cut(code, ":")
	modifiers, event, _ := strings.Cut(modifiers, ":")
	n, err := strconv.Atoi(code)
	m, err2 := strconv.Atoi(modifiers)
	const locks, ctrl = 64 | 128, 4
	if err != nil || err2 != nil || (m-1)&^locks != ctrl || event == "3" || n < '@' || n > 'z' {
		return 0xff
	}
	return byte(n) & 0x1f
}
