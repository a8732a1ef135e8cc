package remote

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

const (
	// early is how long before its end a token is renewed, at most; a short-lived one is renewed when a quarter of its
	// time is left.
	early = 30 * time.Second
	// redeemFor is how long an authorization server may take to answer.
	redeemFor = 30 * time.Second
	// turnFor is how long another process may lock the stored grant: longer than its request takes.
	turnFor = redeemFor + 15*time.Second
	// refusedGrant is the only error that says that a refresh token is invalid (RFC 6749, 5.2). All others are about the
	// request, the client or the moment.
	refusedGrant = "invalid_grant"
	// unknownClient is what a server says that has forgotten the client that was registered there.
	unknownClient = "invalid_client"
)

// due reports whether the access token is to be renewed before it is sent.
func (g Grant) due(now time.Time) bool {
	switch {
	case g.AccessToken == "":
		return g.RefreshToken != ""
	case g.Expiry.IsZero():
		return false
	}
	margin := early
	if !g.Obtained.IsZero() {
		margin = min(margin, g.Expiry.Sub(g.Obtained)/4)
	}
	return !now.Before(g.Expiry.Add(-margin))
}

// better reports whether the access token can be used in place of used.
func (g Grant) better(used string, now time.Time) bool {
	return g.AccessToken != "" && g.AccessToken != used && (g.Expiry.IsZero() || now.Before(g.Expiry))
}

// renew gets another access token in place of used without the user. No error, and none that is better: a new authorization is needed.
// It is called with the turn. No other process renews the grant meanwhile, and another one's newer token is used.
func (o *OAuth) renew(ctx context.Context, used string) error {
	if err := o.reload(); err != nil || o.grant.RefreshToken == "" {
		return err // servers without a login leave no lock file
	}
	waiting, cancel := context.WithTimeout(ctx, turnFor)
	defer cancel()
	release, err := o.hold(waiting)
	if err != nil {
		return err
	}
	defer release()
	for refused := ""; ; {
		if err := o.reload(); err != nil {
			return err
		}
		g := o.grant
		switch {
		case g.better(used, time.Now()) && !g.due(time.Now()):
			return nil // another process has renewed it, or logged in
		case g.RefreshToken == "" || g.TokenURL == "":
			return nil
		case g.RefreshToken == refused:
			g.AccessToken, g.RefreshToken, g.Obtained, g.Expiry = "", "", time.Time{}, time.Time{}
			return o.keep(g)
		}
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.RefreshToken}}
		if len(g.Scopes) > 0 {
			form.Set("scope", joinScopes(g.Scopes))
		}
		next, err := o.redeem(ctx, g, form)
		if code := refusalCode(err); form.Has("scope") && (code == "invalid_scope" || code == "invalid_request") {
			form.Del("scope") // Entra ID wants to have it, and Salesforce refuses it
			next, err = o.redeem(ctx, g, form)
		}
		if len(next.Scopes) == 0 {
			next.Scopes = g.Scopes // the server names them only if they differ
		}
		if refusalCode(err) == refusedGrant {
			refused = g.RefreshToken // a process without the lock may have stored a better one meanwhile
			continue
		}
		if refusalCode(err) == unknownClient && o.opts.ClientID == "" {
			if o.forgotten = o.opts.Authorize != nil; o.forgotten {
				return nil
			}
			return fmt.Errorf("%w: if it says so again, it has forgotten outlive, and %s", err, o.wanted())
		}
		if err != nil {
			return err
		}
		if o.keep(next) != nil && next.RefreshToken != g.RefreshToken && o.unsaved.used == "" {
			o.unsaved.used = g.RefreshToken
		}
		return nil
	}
}

// unsaved says that a renewed grant could not be stored, as on a full disk.
type unsaved struct {
	used string // the refresh token that the stored grant has still; "": all is stored
	told bool   // that it could not be stored
}

// saveAgain tries once more to store what could not be. The first failure is an error.
func (o *OAuth) saveAgain(ctx context.Context) error {
	if o.unsaved.used == "" {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	release, err := o.hold(waiting)
	if err == nil {
		defer release()
		if err = o.reload(); err == nil && o.unsaved.used != "" {
			err = o.keep(o.grant)
		}
	}
	if err == nil || o.unsaved.told {
		return nil
	}
	o.unsaved.told = true
	return fmt.Errorf("%w: it is tried again; if outlive ends before, the login is lost", err)
}
