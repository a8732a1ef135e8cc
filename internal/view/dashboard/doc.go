// Package dashboard is the page on which everything that outlive keeps alive can be seen: an HTTP handler that renders an overview
// with html/template, and one stream of changed fragments for each open page. Plots are SVG made here, each with a table that says
// the same. What a page shows is rendered once for all browsers, and a row when what it shows has changed (view.go). A page works without JavaScript, too: it loads itself again then.
//
// Who may look: requests whose Host and Origin are this machine's, from this user where the system can tell, and with the token of
// the link that was printed, which becomes a cookie. Nothing can be changed unless [Options.Control] is set; then each form has a
// second token.
//
// It starts no goroutine beside those of net/http, one for each open page; they end with their request.
package dashboard
