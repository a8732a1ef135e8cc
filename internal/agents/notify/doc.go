// Package notify sends messages to humans, and receives their answers.
//
// A [Channel] is one way to send: [Telegram] with buttons and editable messages, [Shoutrrr] for the services of that
// library, [Exec] for a program. [Outbox] keeps messages until they are sent, across failures, rate limits and kills, in
// tables of its caller's database, independently for each channel. [Updates] listens to one Telegram bot for pressed
// buttons and replies. Secrets are removed before anything is stored or sent, by [Redact].
//
// Messages of one kind that wait together for a channel that takes only so many become one list ([Line]), which is changed
// when one of them changes. Channels into one chat share its [Pace], and answers to a person go before other messages.
//
// Every message is sent once as far as the channel allows: no channel has idempotency keys, so a message without a
// response (a broken connection, or a kill) may have arrived. It is sent again, marked as repeated. A Telegram update is
// handled and confirmed in one transaction, so that its action happens exactly once.
//
// Goroutines: [Outbox.Run] and [Outbox.Drain] start one for each channel and wait for them; their contexts end them.
// [Updates.Run] runs in its caller's and ends with its context. [Shoutrrr.Send] starts one for each message; one that
// the library keeps beyond its time ends with its request, and no other is started before.
//
// Ownership: the database is the caller's; the tables of [Schema] are this package's. A channel belongs to its lane of
// the outbox. The listener owns the offset, and by a file lock the bot, among all processes of a user.
package notify
