package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ways of a client to show who it is at the token endpoint (RFC 7591, token_endpoint_auth_method).
const (
	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

// tokenRefusal is an authorization server's no (RFC 6749, 5.2).
type tokenRefusal struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (r tokenRefusal) Error() string {
	return strings.TrimSuffix(oneLineText(r.Code+": "+r.Description), ":")
}

// refusalIn is the refusal in an authorization server's answer.
func refusalIn(status int, body []byte) (refusal tokenRefusal, refused bool) {
	return refusal, json.Unmarshal(body, &refusal) == nil && refusal.Code != "" && status < 500
}

// refusalCode is the code of the refusal that err is, "" for any other error and for none.
func refusalCode(err error) string {
	var refusal tokenRefusal
	errors.As(err, &refusal)
	return refusal.Code
}

// tokenAnswer is its yes (RFC 6749, 5.1). The code or the refresh token is used up by then, so the answer is not given up for a
// lifetime or a scope that cannot be read, nor for its Content-Type.
type tokenAnswer struct {
	AccessToken  string  `json:"access_token"`
	TokenType    string  `json:"token_type"`
	ExpiresIn    seconds `json:"expires_in"`
	RefreshToken string  `json:"refresh_token"`
	Scope        any     `json:"scope"`
}

// seconds is a number that some servers write as a string, with a fraction or as null. One that cannot be read is not told.
type seconds int64

// UnmarshalJSON reads a number, or one in quotes.
func (s *seconds) UnmarshalJSON(raw []byte) error {
	f, _ := strconv.ParseFloat(strings.Trim(string(raw), `"`), 64)
	*s = seconds(min(max(f, 0), 10*365*24*3600))
	return nil
}

func joinScopes(scopes []string) string { return strings.Join(scopes, " ") }

// answerTo is an authorization server's answer, of at most [maxMetadata] bytes; status 0: there is none.
func (o *OAuth) answerTo(req *http.Request) (status int, body []byte, err error) {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	resp, err := o.client.Do(req)
	if err != nil {
		return 0, nil, cause(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxMetadata))
	return resp.StatusCode, bytes.TrimPrefix(body, byteOrderMark), err
}

// redeem asks for a token with what form holds, for the resource and as the client of g. The grant it returns is g with the token.
func (o *OAuth) redeem(ctx context.Context, g Grant, form url.Values) (Grant, error) {
	if g.Resource != "" {
		form.Set("resource", g.Resource)
	}
	req, err := clientRequest(ctx, g.TokenURL, g, form)
	if err != nil {
		return g, err
	}
	status, body, err := o.answerTo(req)
	if err != nil {
		return g, fmt.Errorf("ask %s for a token: %w", g.Issuer, err)
	}
	refusal, refused := refusalIn(status, body)
	switch done := status == http.StatusOK || status == http.StatusCreated; {
	case refused && !done:
		return g, fmt.Errorf("%s gives no token: %w", g.Issuer, refusal)
	case !done:
		return g, fmt.Errorf("%s gives no token: HTTP %d %s", g.Issuer, status, excerpt(body))
	}
	var answer tokenAnswer
	if err := json.Unmarshal(body, &answer); err != nil {
		return g, fmt.Errorf("read the token of %s: %w", g.Issuer, err)
	}
	return answer.grant(g, form)
}

// grant is g with the token.
func (a tokenAnswer) grant(g Grant, form url.Values) (Grant, error) {
	switch {
	case a.AccessToken == "":
		return g, fmt.Errorf("%s gave an answer without a token", g.Issuer)
	case strings.EqualFold(a.TokenType, "DPoP"): // bound to a key that we do not have; any other word, such as Slack's "bot", is a bearer token's
		return g, fmt.Errorf("%s gave a token of type %q, which is not supported", g.Issuer, a.TokenType)
	}
	now := time.Now()
	g.AccessToken, g.Obtained, g.Expiry = a.AccessToken, now, time.Time{}
	if a.ExpiresIn > 0 {
		g.Expiry = now.Add(time.Duration(a.ExpiresIn) * time.Second)
	}
	if a.RefreshToken != "" {
		g.RefreshToken = a.RefreshToken
	}
	g.Scopes = strings.Fields(form.Get("scope"))
	if scope, ok := a.Scope.(string); ok {
		g.Scopes = strings.Fields(scope)
	}
	return g, nil
}

// clientRequest is a request to an endpoint of the authorization server in the way the client was told to show who it is.
func clientRequest(ctx context.Context, endpoint string, g Grant, form url.Values) (*http.Request, error) {
	if g.ClientAuth != authBasic {
		form.Set("client_id", g.ClientID)
	}
	if g.ClientAuth == authPost {
		form.Set("client_secret", g.ClientSecret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", g.Issuer, err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if g.ClientAuth == authBasic {
		req.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret)) // RFC 6749, 2.3.1
	}
	return req, nil
}

// wayToAuthenticate chooses among what a server offers; without a word of it, basic is what every server must know.
func wayToAuthenticate(secret string, offered []string) string {
	switch {
	case secret == "":
		return authNone
	case len(offered) == 0 || slices.Contains(offered, authBasic):
		return authBasic
	case slices.Contains(offered, authPost):
		return authPost
	case slices.Contains(offered, authNone):
		return authNone
	}
	return authBasic
}
