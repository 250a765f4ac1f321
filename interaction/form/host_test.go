package form

import "testing"

// TestHost checks that a host with lookalike letters is shown in both of its forms.
func TestHost(t *testing.T) {
	for name, want := range map[string]string{
		"github.com":              "github.com",
		"127.0.0.1":               "127.0.0.1",
		"::1":                     "::1",
		"gіthub.com":              "xn--gthub-n2e.com (gіthub.com)", // a Cyrillic i
		"аррӏе.com":               "xn--80ak6aa92e.com (аррӏе.com)", // Cyrillic letters only
		"xn--80ak6aa92e.com":      "xn--80ak6aa92e.com (аррӏе.com)", // the same host in its encoded form
		"login.xn--gthub-n2e.com": "login.xn--gthub-n2e.com (login.gіthub.com)",
		"bücher.example":          "xn--bcher-kva.example (bücher.example)",
		"例え.jp":                   "xn--r8jz45g.jp (例え.jp)",
		"ｇithub.com":              "xn--ithub-dq33a.com (ｇithub.com)",
	} {
		if got := Host(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
