// Package notify tells a human. [Telegram] sends one message; [Outbox] keeps messages until they are sent, across
// failures, rate limits and kills, in a table of its caller's database.
//
// Every message is sent once as far as the Bot API allows: it knows no idempotency key, so a message whose answer was
// never seen (the connection broke behind the request, or we were killed) may or may not have arrived. Such a message
// is sent again, marked: a repeated one is better than none.
//
// Starts no goroutine: whoever owns the outbox calls [Outbox.Deliver].
package notify
