//go:build unix

package main

// carePart is what can be measured by itself.
type carePart struct {
	name    string
	measure func() error
}

// carePartNames are the names of careParts.
var carePartNames = []string{"reloads", "spares", "saves", "launchers", "lazy", "taps"}

// careParts measure what outlive does for servers beyond starting them again, in this order.
func (b *bench) careParts(opts options, servers []namedServer, found *care) []carePart {
	if opts.reloads > 0 {
		b.plan.Reloads = opts.reloads
	}
	measure := map[string]func() error{
		"reloads":   func() (err error) { found.Reload, err = b.reloads(b.plan.Reloads); return err },
		"spares":    func() (err error) { found.Standby, err = b.standbys(servers); return err },
		"saves":     func() (err error) { found.Saves, err = b.saves(opts.python); return err },
		"launchers": func() (err error) { found.Launchers, err = b.launchers(opts.launchers); return err },
		"lazy":      func() (err error) { found.Lazy, err = b.lazies(); return err },
		"taps":      func() (err error) { found.Tap, err = b.taps(b.plan.Taps); return err },
	}
	var parts []carePart
	for _, name := range carePartNames {
		parts = append(parts, carePart{name, measure[name]})
	}
	return parts
}
