// Package notify tells a human, and hears what they answer.
//
// A [Channel] is one way to somebody: [Telegram] with buttons and messages that change where they stand, [Shoutrrr] for
// the services of that library, [Exec] for a program. [Outbox] keeps messages until they are sent, across failures, rate
// limits and kills, in tables of its caller's database, each channel by itself. [Updates] listens to one Telegram bot:
// buttons pressed and replies written. Secrets are taken out of everything before it is kept or sent, by [Redact].
//
// Every message is sent once as far as the channel allows: none of them knows an idempotency key, so a message whose
// answer was never seen (the connection broke behind the request, or we were killed) may or may not have arrived. Such a
// message is sent again, marked: a repeated one is better than none. An update of Telegram is dealt with and confirmed in
// one transaction, so that what it asks for happens exactly once.
//
// Goroutines: [Outbox.Run] and [Outbox.Drain] start one for each channel and wait for them; their contexts end them.
// [Updates.Run] is its caller's, and its context ends it. [Shoutrrr.Send] starts one for each message; one that the
// library keeps beyond its time ends with its request, and no other is started before. Nothing else starts any.
//
// Who owns what: the database is the caller's; the tables of [Schema] are this room's. A channel belongs to its lane of
// the outbox. The listener owns the offset, and by a file lock the bot, among all processes of a user.
package notify
