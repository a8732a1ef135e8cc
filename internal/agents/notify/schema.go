package notify

// Schema makes the room's tables. The caller runs it on its database.
const Schema = `
CREATE TABLE IF NOT EXISTS outbox_message (
	id         INTEGER PRIMARY KEY,
	channel    TEXT NOT NULL,
	key        TEXT NOT NULL,
	thread     TEXT NOT NULL DEFAULT '',
	message    TEXT NOT NULL,                  -- JSON of Message
	state      TEXT NOT NULL DEFAULT 'queued', -- queued, sending, sent, merged (into an older one), dropped
	tries      INTEGER NOT NULL DEFAULT 0,
	not_before INTEGER NOT NULL DEFAULT 0,     -- Unix milliseconds
	refused    INTEGER NOT NULL DEFAULT 0,     -- what it waits for is a human
	unsure     INTEGER NOT NULL DEFAULT 0,     -- it may have arrived already
	plain      INTEGER NOT NULL DEFAULT 0,     -- send without formatting
	ref        TEXT NOT NULL DEFAULT '',       -- what the channel calls it
	error      TEXT NOT NULL DEFAULT '',
	UNIQUE (channel, key)
);
CREATE INDEX IF NOT EXISTS outbox_waiting ON outbox_message (channel, id) WHERE state IN ('queued', 'sending');
CREATE INDEX IF NOT EXISTS outbox_thread ON outbox_message (channel, thread, id) WHERE thread <> '';
CREATE TABLE IF NOT EXISTS outbox_channel (
	name       TEXT PRIMARY KEY,
	refused    INTEGER NOT NULL DEFAULT 0,     -- it lets nothing through
	episodes   INTEGER NOT NULL DEFAULT 0,     -- how often it began to
	moved_from TEXT NOT NULL DEFAULT '',
	moved_to   TEXT NOT NULL DEFAULT ''
);
CREATE TABLE IF NOT EXISTS telegram_offset (
	bot  TEXT PRIMARY KEY,
	next INTEGER NOT NULL                      -- the first update that was not applied
);
CREATE TABLE IF NOT EXISTS telegram_answer (
	id   INTEGER PRIMARY KEY,
	bot  TEXT NOT NULL,
	call TEXT NOT NULL,                        -- the callback query that waits for it
	text TEXT NOT NULL,
	tries INTEGER NOT NULL DEFAULT 0
);
`
