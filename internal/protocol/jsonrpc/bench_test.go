package jsonrpc

import (
	"fmt"
	"strings"
	"testing"
)

// benchLine builds a tool answer of about size bytes in one of four shapes.
func benchLine(shape string, size int) []byte {
	const head, foot = `{"result":{"content":[{"type":"text","text":`, `}]},"jsonrpc":"2.0","id":12345}`
	var b strings.Builder
	b.WriteString(head)
	switch room := size - len(head) - len(foot); shape {
	case "structure":
		b.WriteByte('[')
		for i := 0; b.Len() < room; i++ {
			fmt.Fprintf(&b, `{"id":%d,"name":"item","ok":true,"tags":["a","bc"],"pos":{"x":1.5,"y":-2}},`, i)
		}
		b.WriteString(`null]`)
	case "cjk":
		b.WriteByte('"')
		for b.Len() < room+len(head)-20 {
			b.WriteString(`日本語の文章、改行\n`)
		}
		b.WriteByte('"')
	default:
		piece := `Prose goes on for a while, and \"now and then\" it has something to escape.\n` +
			strings.Repeat(`This line has nothing of the kind, nor has the next. `, 4) + `\n`
		if shape == "code" {
			piece = `	fmt.Println(\"hello, world\")\n\t// A comment as long as such lines are.\n`[1:]
		}
		b.WriteByte('"')
		for b.Len()+len(piece) < size-len(foot) {
			b.WriteString(piece)
		}
		b.WriteString(strings.Repeat("x", max(0, size-b.Len()-len(foot)-1)))
		b.WriteByte('"')
	}
	b.WriteString(foot)
	return []byte(b.String())
}

func BenchmarkScan(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"200B", 200}, {"4KB", 4 << 10}, {"64KB", 64 << 10}, {"1MB", 1 << 20}} {
		for _, shape := range []string{"text", "code", "structure", "cjk"} {
			line := benchLine(shape, size.bytes)
			b.Run(size.name+"/"+shape, func(b *testing.B) {
				b.SetBytes(int64(len(line)))
				b.ReportAllocs()
				var e Envelope
				for b.Loop() {
					if err := e.Scan(line); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkHashID(b *testing.B) {
	for _, id := range []string{`1`, `"a1b2c3d4-e5f6-7890-abcd-ef1234567890"`} {
		b.Run(id, func(b *testing.B) {
			raw := []byte(id)
			for b.Loop() {
				HashID(raw)
			}
		})
	}
}

func TestNoAllocations(t *testing.T) {
	line := benchLine("text", 4<<10)
	call := []byte(`{"jsonrpc":"2.0","\u0069d":"\u00e9","method":"tools/call","params":{"n\u0061me":"x","arguments":{"k":[1,2,{"a":"日本"}]}}}`)
	deep := []byte(`{"method":"x","params":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`)
	broken := []byte(`{"method":"x","params":{"a":}}`)
	buf := make([]byte, 0, 64<<10)
	number, fraction, float := []byte(`12`), []byte(`1.25e-7`), []byte(`12.0`)
	text, escaped, accent := []byte(`"abc-1"`), []byte(`"\u00e9\ud83d\ude00"`), []byte(`"é😀"`)
	id := Find(call, "id")
	var e Envelope
	for name, f := range map[string]func(){
		"scan response":  func() { _ = e.Scan(line) },
		"scan call":      func() { _ = e.Scan(call) },
		"scan deep":      func() { _ = e.Scan(deep) },
		"scan broken":    func() { _ = e.Scan(broken) },
		"hash number":    func() { HashID(number) },
		"hash fraction":  func() { HashID(fraction) },
		"hash string":    func() { HashID(text) },
		"hash escaped":   func() { HashID(escaped) },
		"same id":        func() { SameID(escaped, accent); SameID(number, float) },
		"classify":       func() { OddID(float); OddID(escaped) },
		"equal string":   func() { EqualString([]byte(`"tools\/call"`), "tools/call") },
		"find path":      func() { FindPath(call, "params", "arguments", "k") },
		"members":        func() { countMembers(call) },
		"elements":       func() { countElements(call) },
		"replace":        func() { buf = Replace(buf[:0], call, id, number) },
		"set":            func() { buf, _ = Set(buf[:0], call, []byte("1"), "params", "_meta", "x") },
		"delete":         func() { buf = Delete(buf[:0], call, "method") },
		"error response": func() { buf = AppendError(buf[:0], []byte("1"), InternalError, "no\n\xff", nil) },
		"sanitize":       func() { buf = Sanitize(buf[:0], call) },
		"recover":        func() { RecoverID(line[:100], line[len(line)-100:]) },
	} {
		if n := testing.AllocsPerRun(20, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func countMembers(object []byte) (n int) {
	for k, v := range Members(object) {
		n += v.End - k.Start
	}
	return n
}

func countElements(doc []byte) (n int) {
	for e := range Elements(FindPath(doc, "params", "arguments", "k").Of(doc)) {
		n += e.End
	}
	return n
}
