package backend

import (
	"slices"
	"time"
)

// ServerDied tells that the leader of process gen is dead, that nobody is left who takes anything from its stdin, and that
// its last words on stderr are known. Others that it has started may still live, until ServerExited tells that they do not; it
// comes in any case, and this need not. exit.Unread means nothing here: it is asked for when it is needed.
func (b *Backend) ServerDied(now time.Time, gen int, exit Exit) {
	b.now = now
	if p := b.byGen(gen); p != nil && !p.exited {
		p.died = &exit
		b.relieve(p)
		b.settle()
	}
}

// relieve lets a spare take over from a serving process whose leader is dead, before all that it has started is gone: a
// client waits, and to make sure of that takes as long as all the rest.
//
// Nothing may come of it that waiting would have prevented. So it is only for the case that a spare follows that can serve
// now; no process is started then, and spares run beside others anyway. And only when the output has ended: whoever of
// the dead process's descendants still writes answers, or could, holds that pipe, so until then no call's fate is decided,
// and if it takes longer ServerExited comes first. Whoever is left has neither of the pipes and works, if at all, on what
// its leader had asked; such a call is treated as ever: repeated if that does no harm, unknown otherwise.
func (b *Backend) relieve(p *process) {
	if p != b.process || p.died == nil || p.exited || !p.closed {
		return
	}
	exit := *p.died
	var known bool
	if exit.Unread, known = p.server.Unread(); !known || !b.machine.Relieves(b.now, b.endOf(p, exit)) {
		return
	}
	p.lingers = true
	b.exited(p, exit)
}

// alone reports whether no process beside the serving one has anything left to say.
func (b *Backend) alone() bool {
	return !slices.ContainsFunc(b.beside, func(p *process) bool { return !p.lingers })
}
