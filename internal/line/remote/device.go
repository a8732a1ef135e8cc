package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
)

// deviceGrantType is the grant type of a login by device code (RFC 8628, 3.4).
const deviceGrantType = "urn:ietf:params:oauth:grant-type:device_code"

// deviceRedirect is the redirect that a client for device codes is registered with: there are servers that register none without. No
// browser comes back to it; it tells such a client from one of the browser's flow, whose redirect has a port.
const deviceRedirect = "http://127.0.0.1" + redirectPath

// Pauses between two questions whether the user has consented (RFC 8628, 3.2 and 3.5).
const (
	deviceInterval = 5 * time.Second // if the server names none
	deviceSlowDown = 5 * time.Second // added by slow_down
	deviceSlowest  = time.Minute     // that failures of the network lead to
)

// Errors of [OAuth.LoginByDevice] that the user can do something about.
var (
	// ErrNoDeviceLogin says that the authorization server issues no device codes.
	ErrNoDeviceLogin = errors.New("its metadata has no device_authorization_endpoint")
	// ErrDeviceClient says that the authorization server issues none to this client.
	ErrDeviceClient = errors.New("this client may not log in with a device code")
	// ErrDeviceTooLate says that the user has not consented in time.
	ErrDeviceTooLate = errors.New("the code was not entered in time")
	// ErrDeviceDenied says that the user has refused.
	ErrDeviceDenied = errors.New("the request was denied on the page")
)

// DeviceCode is what a user needs in order to consent on any machine.
type DeviceCode struct {
	Page     string        // address of the page; http or https, without control characters
	Code     string        // to be entered there; printable
	Complete string        // address of the page with the code in it; "": there is none
	Valid    time.Duration // from now on
}

// LoginByDevice is [OAuth.Login] where no browser can come back to this machine, as over SSH (RFC 8628): show is given the code at once, and
// the authorization server is asked until the user has consented on whatever machine. That ends with the code's validity, or
// with [OAuthOptions.Patience] if that is set and shorter. The error says what failed, and may be one of those above.
func (o *OAuth) LoginByDevice(ctx context.Context, show func(DeviceCode) error) error {
	return o.login(ctx, func(ctx context.Context, g Grant, server authServer, scopes []string) (Grant, error) {
		return o.deviceGrant(ctx, g, server, scopes, show)
	})
}

// deviceAnswer is an authorization server's answer with a device code (RFC 8628, 3.2).
type deviceAnswer struct {
	DeviceCode string  `json:"device_code"`
	UserCode   string  `json:"user_code"`
	Page       string  `json:"verification_uri"`
	PageURL    string  `json:"verification_url"` // in place of verification_uri with some servers
	Complete   string  `json:"verification_uri_complete"`
	ExpiresIn  seconds `json:"expires_in"`
	Interval   seconds `json:"interval"`
}

// deviceGrant gets a code, shows it and waits for the user's consent.
func (o *OAuth) deviceGrant(ctx context.Context, g Grant, server authServer, scopes []string, show func(DeviceCode) error) (Grant, error) {
	if server.DeviceEndpoint == "" {
		return g, fmt.Errorf("%s gives no device codes: %w", server.Issuer, ErrNoDeviceLogin)
	}
	if err := o.mustBeSafe(server.DeviceEndpoint); err != nil {
		return g, err
	}
	stored := g.ClientID != "" && g.RedirectURI == deviceRedirect && o.opts.ClientID == ""
	g, err := o.identify(ctx, g, server, deviceRedirect, scopes)
	if err != nil {
		return g, err
	}
	answer, err := o.deviceCode(ctx, g, server, scopes)
	if stored && refusalCode(err) == unknownClient && server.RegistrationEndpoint != "" { // it has forgotten us
		if g, err = o.register(ctx, g, server, scopes); err == nil {
			answer, err = o.deviceCode(ctx, g, server, scopes)
		}
	}
	if err != nil {
		return g, err
	}
	valid := cmp.Or(time.Duration(answer.ExpiresIn)*time.Second, defaultPatience)
	if o.opts.Patience > 0 {
		valid = min(valid, o.opts.Patience)
	}
	over := time.After(valid)
	if err := show(DeviceCode{Page: answer.Page, Code: answer.UserCode, Complete: answer.Complete, Valid: valid}); err != nil {
		return g, fmt.Errorf("show the user the code: %w", err)
	}
	o.asking.Store(true)
	defer o.asking.Store(false)
	return o.awaitConsent(ctx, g, answer, over)
}

// deviceCode asks for a code.
func (o *OAuth) deviceCode(ctx context.Context, g Grant, server authServer, scopes []string) (deviceAnswer, error) {
	var answer deviceAnswer
	form := url.Values{}
	if len(scopes) > 0 {
		form.Set("scope", joinScopes(scopes))
	}
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	req, err := clientRequest(ctx, server.DeviceEndpoint, g, form)
	if err != nil {
		return answer, err
	}
	status, body, err := o.answerTo(req)
	if err != nil {
		return answer, fmt.Errorf("ask %s for a device code: %w", server.Issuer, err)
	}
	if refusal, refused := refusalIn(status, body); refused {
		if refusal.Code == "unauthorized_client" || refusal.Code == "unsupported_grant_type" {
			return answer, fmt.Errorf("%s gives no device code: %w: %w", server.Issuer, ErrDeviceClient, refusal)
		}
		return answer, fmt.Errorf("%s gives no device code: %w", server.Issuer, refusal)
	}
	if status != http.StatusOK && status != http.StatusCreated {
		return answer, fmt.Errorf("%s gives no device code: HTTP %d %s", server.Issuer, status, excerpt(body))
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, fmt.Errorf("read the device code of %s: %w", server.Issuer, err)
	}
	answer.Page = cmp.Or(answer.Page, answer.PageURL)
	if !isPage(answer.Complete) {
		answer.Complete = "" // the other address and the code will do
	}
	if answer.DeviceCode == "" || answer.UserCode == "" || !isPage(answer.Page) ||
		strings.ContainsFunc(answer.UserCode, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return answer, fmt.Errorf("%s gave an answer without a device code, or without a page to enter it on", server.Issuer)
	}
	return answer, nil
}

// isPage reports whether a text is an address that may be shown as one to open: parsing refuses control characters.
func isPage(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// awaitConsent asks for the token until the user has consented or refused, or over comes. A question that is on its way then is
// finished: its answer may be the token.
func (o *OAuth) awaitConsent(ctx context.Context, g Grant, answer deviceAnswer, over <-chan time.Time) (Grant, error) {
	interval := cmp.Or(time.Duration(answer.Interval)*time.Second, deviceInterval)
	var trouble error // why the last question had no answer
	for {
		select {
		case <-ctx.Done():
			return g, fmt.Errorf("wait for the user's consent: %w", ctx.Err())
		case <-over:
			if trouble != nil {
				return g, fmt.Errorf("%w, or it could not be asked whether it was: %w", ErrDeviceTooLate, trouble)
			}
			return g, ErrDeviceTooLate
		case <-time.After(interval):
		}
		next, err := o.redeem(ctx, g, url.Values{"grant_type": {deviceGrantType}, "device_code": {answer.DeviceCode}})
		trouble = nil
		switch code := refusalCode(err); {
		case err == nil:
			return next, nil
		case code == "authorization_pending":
		case code == "slow_down":
			interval += deviceSlowDown
		case code == "access_denied":
			return g, fmt.Errorf("%s gives no token: %w", g.Issuer, ErrDeviceDenied)
		case code == "expired_token":
			return g, ErrDeviceTooLate
		case slices.Contains([]string{"unauthorized_client", "unsupported_grant_type"}, code):
			return g, fmt.Errorf("%w: %w", ErrDeviceClient, err)
		case errors.As(err, &passing{}) && ctx.Err() == nil:
			trouble, interval = err, max(interval, min(2*interval, deviceSlowest))
		default:
			return g, err
		}
	}
}
