package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

// valueIsNext are ends of a JSON string after which a rule expects a value. The rule must not take the closing quote
// of this string for the opening quote of the value.
var valueIsNext = []string{
	"ool too--api-key ", "--token", "--token ", "--token=", "--token='", `--token "`, `--token \`, `--token \"`,
	"token", "token ", "token=", "token = ", "token:", "token: ", `token="`, `token=\"`, `token="""`, "token='", "token=`",
	"token\\", `token\\`, "set token ", "export TOKEN=", "export TOKEN='", "setToken(", `setToken("`, "new String(",
	`var token string = "`,
	"Authorization:", "Authorization: Bearer ", "Authorization: Basic ", "Authorization: Digest ", "Cookie: a=",
	"Set-Cookie: ",
	"password is ", "password is: ", "password -> ", "password | ", "password for bob: ", "password:\n", "password: |\n",
	"password: |\n  a",
	"user bob password ", "login bob password ", "machine h login bob password ", "PASS ", "AUTH ", "LOGIN bob ",
	"IDENTIFIED BY ", "IDENTIFIED BY '",
	"curl -u ", "curl -u bob:", "curl -u 'bob:", `curl -u "bob:`, "mysql -p", "sshpass -p ", "sshpass -p",
	"docker login -p ", "gh secret set A --body ",
	"<password>", "<password></a>", "<key>password</key>", "<string>", `<a name="token">`, `<add key="token" value=`,
	`name="token" value=`,
	"name: token", "name: token\nvalue: ", "://", "://bob:", "://bob:a", "hooks.slack.com/services/",
	"define('DB_PASSWORD', ", `env("API_KEY", `,
	"-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n", "sk-ant-", "eyJ", "h:5432:db:bob:", "*:*:*:*:",
	"redacted]\" -> ", "[token] => ",
	"SecureString ", "PRAGMA key = ", "x.auth(", "Private-Lines: 1", "variable \"token\" { default = ",
	"%22token%22%3A%22", "snmp-server community ",
	"\x1b[1mtoken=", "token\x1b[0m=", "token=\x1b[1m", "\x1b]0;", "\x1b", "token=!!str ", "token: &a ", "secret key: ",
	"_authToken=", "\\", `\"`, `\n`, "ü",
}

// TestMaskStaysInItsString checks that no mask extends from one string into another, in JSON and in JSON inside a
// JSON string.
func TestMaskStaysInItsString(t *testing.T) {
	for _, end := range valueIsNext {
		for _, next := range []string{"value", "hunter2x", end, "aB3dE6gHaB3dE6gH", `a"hunter2x`, `"`, `\`, "", ",", ":",
			"[redacted]", "…[redacted]"} {
			for _, v := range []any{
				map[string]string{"msg": end, end: next},
				[]any{end, next, 12345678},
				[]any{map[string]string{end: next}, next},
				map[string]string{"name": end, "value": next},
				map[string]any{end: 12345678},
			} {
				s := mustJSON(v)
				pretty, err := json.MarshalIndent(v, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				checkRedact(t, s)
				checkRedact(t, string(pretty))
				checkRedact(t, strings.ReplaceAll(s, ",", " , "))
				checkRedact(t, mustJSON([]string{s, "x"}))
				checkRedact(t, mustJSON([]string{mustJSON([]string{s, "x"}), "x"}))
			}
		}
	}
}

// TestEachLineOfJSONStaysValid checks that a line of JSON stays valid in a text that is not JSON as a whole.
func TestEachLineOfJSONStaysValid(t *testing.T) {
	for _, end := range valueIsNext {
		line := mustJSON(map[string]string{"msg": end, end: "value"})
		masked := Text(line + "\n" + line + "\nend")
		lines := strings.Split(masked, "\n")
		if len(lines) != 3 {
			t.Errorf("%q: got %q; want len(lines) == 3", line, masked)
		}
		for _, l := range lines[:2] {
			if !json.Valid([]byte(l)) {
				t.Errorf("%q: got %q; want json.Valid([]byte(l))", line, masked)
			}
		}
	}
}

// TestMaskKeepsTheEndOfACommand checks that a rune or an escape stays whole at the end of the examined command line.
func TestMaskKeepsTheEndOfACommand(t *testing.T) {
	for n := range 12 {
		for _, secret := range []string{"ü", "👩", `\u0041`, `\\`, `\"`, `\u00fc`} {
			text := "curl " + strings.Repeat("a", 4080+n) + " -u bob:" + strings.Repeat(secret, 20)
			checkRedact(t, text)
			checkRedact(t, `{"msg":"`+text+`","a":"b"}`)
		}
	}
}
