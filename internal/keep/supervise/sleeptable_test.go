package supervise

// sleepTable is every event in the stages of a sleep, and the events that came with them in all rows.
const sleepTable = `
| row       | Marked                 | Sleep            |
| stopped   | starting S             | .                |
| starting  | stopping T 300ms       | stopping IT 2s   |
| handshake | stopping T 300ms       | .                |
| ready     | ready P 30s 1o         | stopping IT 2s   |
| draining  | .                      | .                |
| answering | .                      | .                |
| closing   | .                      | .                |
| ending    | .                      | .                |
| killed    | .                      | .                |
| sweeping  | .                      | .                |
| leaving   | .                      | .                |
| backoff   | .                      | .                |
| failed    | .                      | .                |
| over      | .                      | .                |
| warming   | ready P 29.99s 1s 2o   | stopping XIT 2s  |
| standby   | ready P 30s 1rs 2o     | stopping XIT 2s  |
| refilling | ready P 30s 2o         | stopping IT 2s   |
| reloading | ready XW 990ms         | .                |
| put off   | .                      | .                |
| put off+  | .                      | .                |
| held up   | .                      | .                |
| both      | ready XW 990ms 1rs     | .                |
| limited   | ready XW 990ms 1s      | .                |
| outdated  | ready WX 990ms 1rs     | stopping XXIT 2s |
| again+by  | stopping T 300ms 1rs   | .                |
| again+new | stopping XT 300ms      | .                |
| adopted   | stopping T 300ms       | .                |
| draining+ | .                      | .                |
| killed+by | stopping 1rs           | .                |
| dead+by   | sweeping 1rs           | .                |
| dead+warm | sweeping 29.99s 1s     | .                |
| dead+new  | sweeping X             | .                |
| dead+both | sweeping X 1rs         | .                |
| dead+old  | sweeping 29.99s 1rs 3s | .                |
| left+by   | sweeping 1rs           | .                |
| left+warm | sweeping 29.99s 1s     | .                |
| left+new  | sweeping X             | .                |
| done+by   | sweeping 1rs           | .                |
| wrong+by  | sweeping 1rs           | .                |

| row        | Start      | SpawnFail | Handshake | Ready | Refused | Drained | StdoutClosed | Exit 0   |
| dozing     | .          | .         | .         | .     | .       | .       | .            | sweeping |
| roused     | .          | .         | .         | .     | .       | .       | .            | sweeping |
| slept      | .          | .         | .         | .     | .       | .       | .            | .        |
| slept+need | .          | .         | .         | .     | .       | .       | .            | .        |
| slept+wish | .          | .         | .         | .     | .       | .       | .            | .        |
| asleep     | starting S | .         | .         | .     | .       | .       | .            | .        |

| row        | Exit 42  | Exit 1   | Gone       | Restart    | Replace        | EOF            | Signal         | Tick       |
| dozing     | sweeping | sweeping | .          | .          | stopping 300ms | stopping 500ms | stopping 600ms | stopping K |
| roused     | sweeping | sweeping | .          | .          | stopping 300ms | stopping 500ms | stopping 600ms | stopping K |
| slept      | .        | .        | stopped    | .          | .              | .              | .              | .          |
| slept+need | .        | .        | starting S | .          | .              | .              | .              | .          |
| slept+wish | .        | .        | starting S | .          | .              | .              | .              | .          |
| asleep     | .        | .        | .          | starting S | .              | stopped F      | stopped F      | .          |

| row        | Replayable | Forgotten | SpareReady | SpareFailed | Condemned  | Overlap    | Limit | Marked | Sleep |
| dozing     | .          | .         | .          | .           | stopping K | .          | .     | .      | .     |
| roused     | .          | .         | .          | .           | stopping K | .          | .     | .      | .     |
| slept      | .          | .         | .          | .           | .          | .          | .     | .      | .     |
| slept+need | .          | .         | .          | .           | .          | .          | .     | .      | .     |
| slept+wish | .          | .         | .          | .           | .          | .          | .     | .      | .     |
| asleep     | .          | .         | .          | .           | .          | starting S | .     | .      | .     |
`
