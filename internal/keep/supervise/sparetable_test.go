package supervise

import (
	"fmt"
	"strings"
)

// ready begins the path of a row with a process that is up; with spares if it is replayable.
func ready(replayable bool, more ...Event) []Event {
	return append([]Event{Replayable{replayable}, Start{}, Ready{0}}, more...)
}

// spareRows are what there can be beside the serving process, in each state that can last; one spare stands by if the
// owner can bring it up.
var spareRows = []tableRow{
	{"warming", ready(true)},
	{"standby", ready(true, SpareReady{1})},
	{"refilling", ready(true, SpareFailed{1, "it died"})},
	{"reloading", ready(false, overlap)},
	{"put off", ready(false, overlap, overlap, second{})},
	{"put off+", ready(false, overlap, overlap, second{}, overlap)},
	{"held up", ready(false, marked, SpareReady{1}, marked)},
	{"both", ready(true, SpareReady{1}, overlap)},
	{"limited", ready(true, limit)},
	{"outdated", ready(true, SpareReady{1}, overlap, SpareFailed{2, "it died"})},

	{"again+by", ready(true, SpareReady{1}, Handshake{0})},
	{"again+new", ready(false, overlap, Handshake{0}, SpareReady{1})},
	{"adopted", ready(true, Exited{Code: 1}, TreeGone{0})},
	{"draining+", ready(true, SpareReady{1}, byTool)},
	{"killed+by", ready(true, SpareReady{1}, StdoutClosed{0})},

	{"dead+by", ready(true, SpareReady{1}, Exited{Code: 1})},
	{"dead+warm", ready(true, Exited{Code: 1})},
	{"dead+new", ready(false, overlap, Exited{Code: 1})},
	{"dead+both", ready(true, SpareReady{1}, overlap, Exited{Code: 1})},
	{"dead+old", ready(true, SpareReady{1}, overlap, SpareFailed{2, "it died"}, Exited{Code: 1})},
	{"left+by", ready(true, SpareReady{1}, Exited{Code: 42})},
	{"left+warm", ready(true, Exited{Code: 42})},
	{"left+new", ready(false, overlap, Exited{Code: 42})},
	{"done+by", ready(true, SpareReady{1}, Exited{})},
	{"wrong+by", ready(true, SpareReady{1}, Exited{Code: 78})},
}

// marks shows the spares: each one's generation, r if it is ready, s if it is stale, o if it is to take over.
func marks(m *Machine) string {
	var b strings.Builder
	for _, s := range m.Snapshot().Spares {
		fmt.Fprintf(&b, " %d", s.Gen)
		for _, mark := range []struct {
			is  bool
			say string
		}{{s.Ready, "r"}, {s.Stale, "s"}, {s.Reload, "o"}} {
			if mark.is {
				b.WriteString(mark.say)
			}
		}
	}
	return b.String()
}

// spareOf is the generation of the newest spare, or one that nobody has.
func spareOf(m *Machine) int {
	if all := m.Snapshot().Spares; len(all) > 0 {
		return all[len(all)-1].Gen
	}
	return m.last + 1
}

// besideTable is the events about spares in the rows of table, where there are none. The letters are those of table, and
// P spawn a spare, W wait for the floor, O take over, X dismiss, L a reload failed; behind the deadline stand the spares there are then.
const besideTable = `
| row       | Replayable    | Forgotten | SpareReady | SpareFailed | Condemned  | Overlap          | Limit            |
| stopped   | .             | .         | .          | .           | .          | starting S       | starting S       |
| starting  | .             | .         | .          | .           | stopping K | stopping T 300ms | stopping T 300ms |
| handshake | .             | .         | .          | .           | stopping K | stopping T 300ms | stopping T 300ms |
| ready     | ready P 30s 1 | .         | .          | .           | stopping K | ready P 30s 1o   | ready P 30s 1o   |
| draining  | .             | .         | .          | .           | stopping K | .                | .                |
| answering | .             | .         | .          | .           | stopping K | .                | .                |
| closing   | .             | .         | .          | .           | stopping K | .                | .                |
| ending    | .             | .         | .          | .           | stopping K | .                | .                |
| killed    | .             | .         | .          | .           | .          | .                | .                |
| sweeping  | .             | .         | .          | .           | .          | .                | .                |
| leaving   | .             | .         | .          | .           | .          | .                | .                |
| backoff   | .             | .         | .          | .           | .          | starting S       | .                |
| failed    | .             | .         | .          | .           | .          | starting S       | .                |
| over      | .             | .         | .          | .           | .          | .                | .                |
`

// spareTable is every event in the rows with spares.
const spareTable = `
| row       | Start | SpawnFail      | Handshake              | Ready         | Refused              | Drained            | StdoutClosed             | Exit 0                 |
| warming   | .     | .              | starting 29.99s 1      | .             | .                    | .                  | stopping K 29.99s 1      | sweeping 29.99s 1      |
| standby   | .     | .              | starting 30s 1r        | .             | .                    | .                  | stopping K 1r            | sweeping 1r            |
| refilling | .     | .              | starting 30s           | .             | .                    | .                  | stopping K               | sweeping               |
| reloading | .     | .              | starting 29.99s 1o     | .             | .                    | .                  | stopping K 29.99s 1o     | sweeping 29.99s 1o     |
| put off   | .     | .              | starting 29.99s 2o     | .             | .                    | .                  | stopping K 29.99s 2o     | sweeping 29.99s 2o     |
| put off+  | .     | .              | starting 29.99s 2o     | .             | .                    | .                  | stopping K 29.99s 2o     | sweeping 29.99s 2o     |
| held up   | .     | .              | starting 30s           | .             | .                    | .                  | stopping K               | sweeping               |
| both      | .     | .              | starting 29.99s 1rs 2o | .             | .                    | .                  | stopping K 29.99s 1rs 2o | sweeping 29.99s 1rs 2o |
| limited   | .     | .              | starting 29.99s 1 2o   | .             | .                    | .                  | stopping K 29.99s 1 2o   | sweeping 29.99s 1 2o   |
| outdated  | .     | .              | starting 29.99s 1rs 3  | .             | .                    | .                  | stopping K 29.99s 1rs 3  | sweeping 29.99s 1rs 3  |
| again+by  | .     | ready OP 30s 2 | starting 30s 1r        | ready 1m0s 1r | stopping T 300ms 1r  | .                  | stopping K 1r            | sweeping 1r            |
| again+new | .     | ready O 1m0s   | starting 30s 1ro       | ready O 1m0s  | stopping T 300ms 1ro | .                  | stopping K 1ro           | sweeping 1ro           |
| adopted   | .     | backoff 250ms  | starting 30s           | ready P 30s 2 | stopping T 300ms     | .                  | stopping K               | sweeping               |
| draining+ | .     | .              | .                      | .             | .                    | stopping IT 2s 1rs | .                        | sweeping 1rs           |
| killed+by | .     | .              | .                      | .             | .                    | .                  | .                        | sweeping 1r            |
| dead+by   | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| dead+warm | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| dead+new  | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| dead+both | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| dead+old  | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| left+by   | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| left+warm | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| left+new  | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| done+by   | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |
| wrong+by  | .     | .              | .                      | .             | .                    | .                  | .                        | .                      |

| row       | Exit 42                | Exit 1                 | Gone                 | Restart                | Replace            | EOF               | Signal             | Tick                |
| warming   | sweeping 29.99s 1      | sweeping 29.99s 1      | .                    | stopping D 1s 1s       | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | ready X 1s          |
| standby   | sweeping 1r            | sweeping 1r            | .                    | stopping D 1s 1rs      | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | ready 1r            |
| refilling | sweeping               | sweeping               | .                    | stopping D 1s          | stopping T 300ms   | stopping I 10s    | stopping T 600ms   | ready P 30s 2       |
| reloading | sweeping 29.99s 1o     | sweeping 29.99s 1o     | .                    | stopping XD 1s         | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | ready XL 30s        |
| put off   | sweeping 29.99s 2o     | sweeping 29.99s 2o     | .                    | stopping XD 1s         | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | ready XL 29s        |
| put off+  | sweeping 29.99s 2o     | sweeping 29.99s 2o     | .                    | stopping XD 1s         | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | ready XLP 29s 3o    |
| held up   | sweeping               | sweeping               | .                    | stopping D 1s          | stopping T 300ms   | stopping I 10s    | stopping T 600ms   | ready P 30s 2o      |
| both      | sweeping 29.99s 1rs 2o | sweeping 29.99s 1rs 2o | .                    | stopping XD 1s 1rs     | stopping XXT 300ms | stopping XXI 10s  | stopping XXT 600ms | ready XLP 30s 1rs 3 |
| limited   | sweeping 29.99s 1 2o   | sweeping 29.99s 1 2o   | .                    | stopping XD 1s 1s      | stopping XXT 300ms | stopping XXI 10s  | stopping XXT 600ms | ready XXL 1s        |
| outdated  | sweeping 29.99s 1rs 3  | sweeping 29.99s 1rs 3  | .                    | stopping D 1s 1rs 3s   | stopping XXT 300ms | stopping XXI 10s  | stopping XXT 600ms | ready X 1s 1rs      |
| again+by  | sweeping 1r            | sweeping 1r            | .                    | stopping T 300ms 1rs   | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | stopping IT 2s 1r   |
| again+new | sweeping 1ro           | sweeping 1ro           | .                    | stopping XT 300ms      | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | stopping IT 2s 1ro  |
| adopted   | sweeping               | sweeping               | .                    | stopping T 300ms       | stopping T 300ms   | stopping I 10s    | stopping T 600ms   | stopping IT 2s      |
| draining+ | sweeping 1rs           | sweeping 1rs           | .                    | .                      | stopping XT 300ms  | stopping XI 10s   | stopping XT 600ms  | stopping IT 2s 1rs  |
| killed+by | sweeping 1r            | sweeping 1r            | .                    | stopping 1rs           | stopping X         | stopping X        | stopping X         | .                   |
| dead+by   | .                      | .                      | ready OP 30s 2       | sweeping 1rs           | sweeping X         | sweeping X        | sweeping X         | .                   |
| dead+warm | .                      | .                      | starting O 29.99s    | sweeping 29.99s 1s     | sweeping X         | sweeping X        | sweeping X         | sweeping X          |
| dead+new  | .                      | .                      | starting O 29.99s    | sweeping X             | sweeping X         | sweeping X        | sweeping X         | sweeping XL         |
| dead+both | .                      | .                      | ready O 29.99s 2o    | sweeping X 1rs         | sweeping XX        | sweeping XX       | sweeping XX        | sweeping XL 1rs     |
| dead+old  | .                      | .                      | ready OP 29.99s 3 4o | sweeping 29.99s 1rs 3s | sweeping XX        | sweeping XX       | sweeping XX        | sweeping X 1rs      |
| left+by   | .                      | .                      | ready OP 30s 2o      | sweeping 1rs           | sweeping X         | sweeping X        | sweeping X         | .                   |
| left+warm | .                      | .                      | starting XS          | sweeping 29.99s 1s     | sweeping X         | sweeping X        | sweeping X         | sweeping X          |
| left+new  | .                      | .                      | starting O 29.99s    | sweeping X             | sweeping X         | sweeping X        | sweeping X         | sweeping XL         |
| done+by   | .                      | .                      | stopped XF           | sweeping 1rs           | sweeping X         | sweeping X        | sweeping X         | .                   |
| wrong+by  | .                      | .                      | failed X             | sweeping 1rs           | sweeping X         | sweeping X        | sweeping X         | .                   |

| row       | Replayable | Forgotten          | SpareReady        | SpareFailed        | Condemned                | Overlap                | Limit                |
| warming   | .          | ready X 59.99s     | ready 59.99s 1r   | ready 1s           | stopping K 29.99s 1      | ready P 29.99s 1s 2o   | ready P 29.99s 1 2o  |
| standby   | .          | ready X 59.99s     | .                 | ready 1s           | stopping K 1r            | ready P 30s 1rs 2o     | ready OP 30s 2       |
| refilling | .          | ready 59.99s       | .                 | .                  | stopping K               | ready P 30s 2o         | ready P 30s 2o       |
| reloading | .          | ready XL 59.99s    | ready O 1m0s      | ready L 59.99s     | stopping K 29.99s 1o     | ready XW 990ms         | .                    |
| put off   | .          | ready XL 58.99s    | ready O 1m0s      | ready L 58.99s     | stopping K 29.99s 2o     | .                      | .                    |
| put off+  | .          | ready XLL 58.99s   | ready OW 990ms    | ready LW 990ms     | stopping K 29.99s 2o     | .                      | .                    |
| held up   | .          | ready L 59.99s     | .                 | .                  | stopping K               | .                      | .                    |
| both      | .          | ready XLX 59.99s   | ready OXP 30s 3   | ready LP 30s 1rs 3 | stopping K 29.99s 1rs 2o | ready XW 990ms 1rs     | .                    |
| limited   | .          | ready XLX 59.99s   | ready O 29.99s 1  | ready L 29.99s 1   | stopping K 29.99s 1 2o   | ready XW 990ms 1s      | .                    |
| outdated  | .          | ready XX 59.99s    | ready X 59.99s 3r | ready 1s 1rs       | stopping K 29.99s 1rs 3  | ready WX 990ms 1rs     | ready W 990ms 1rs 3  |
| again+by  | .          | starting X 29.99s  | .                 | starting 29.99s    | stopping K 1r            | stopping T 300ms 1rs   | stopping T 300ms 1r  |
| again+new | .          | starting XL 29.99s | .                 | starting L 29.99s  | stopping K 1ro           | stopping XT 300ms      | stopping T 300ms 1ro |
| adopted   | .          | .                  | .                 | .                  | stopping K               | stopping T 300ms       | stopping T 300ms     |
| draining+ | .          | stopping X 990ms   | .                 | stopping 990ms     | stopping K 1rs           | .                      | .                    |
| killed+by | .          | stopping X         | .                 | stopping           | .                        | stopping 1rs           | .                    |
| dead+by   | .          | sweeping X         | .                 | sweeping           | .                        | sweeping 1rs           | .                    |
| dead+warm | .          | sweeping X         | sweeping 1r       | sweeping           | .                        | sweeping 29.99s 1s     | .                    |
| dead+new  | .          | sweeping XL        | sweeping 1ro      | sweeping L         | .                        | sweeping X             | .                    |
| dead+both | .          | sweeping XLX       | sweeping 1rs 2ro  | sweeping L 1rs     | .                        | sweeping X 1rs         | .                    |
| dead+old  | .          | sweeping XX        | sweeping 1rs 3r   | sweeping 1rs       | .                        | sweeping 29.99s 1rs 3s | .                    |
| left+by   | .          | sweeping X         | .                 | sweeping           | .                        | sweeping 1rs           | .                    |
| left+warm | .          | sweeping X         | sweeping 1r       | sweeping           | .                        | sweeping 29.99s 1s     | .                    |
| left+new  | .          | sweeping XL        | sweeping 1ro      | sweeping L         | .                        | sweeping X             | .                    |
| done+by   | .          | sweeping X         | .                 | sweeping           | .                        | sweeping 1rs           | .                    |
| wrong+by  | .          | sweeping X         | .                 | sweeping           | .                        | sweeping 1rs           | .                    |
`
