package redact

import (
	"strings"
	"testing"
)

// TestForms checks a text for each rule of syntax, and a similar text that must stay unchanged.
func TestForms(t *testing.T) {
	long := strings.Repeat("MIIEowIBAAKCAQEA\n", 60)
	for text, want := range map[string]string{
		"- name: DB_PASSWORD\n  value: hunter":                    "- name: DB_PASSWORD\n  value: [redacted]",
		"- name: DB_HOST\n  value: hunter":                        "- name: DB_HOST\n  value: hunter",
		"ghp_abcdefghi1\x1b]8;;x\aabcdefghi2":                     "ghp_…[redacted]",
		"influx -password letmein x":                              "influx -password …[redacted] x",
		"the -password flag":                                      "the -password flag",
		"password 'must be set'":                                  "password 'must be set'",
		"#define DB_PASSWORD \"hunter2\"":                         "#define DB_PASSWORD \"…[redacted]\"",
		"import password \"example.com/x\"":                       "import password \"example.com/x\"",
		"password: \"hunter\n  second\"":                          "password: \"[redacted]\"",
		"<entry key=\"db.password\">hunter</entry>":               "<entry key=\"db.password\">[redacted]</entry>",
		"<entry key=\"db.host\">hunter</entry>":                   "<entry key=\"db.host\">hunter</entry>",
		"token = new String(\"hunter2hunter2\")":                  "token = new String(\"[redacted]\")",
		"setPassword(\"hunter2\")":                                "setPassword(\"…[redacted]\")",
		"getPassword(\"hunter2\")":                                "getPassword(\"hunter2\")",
		"PuTTY\nPrivate-Lines: 60\n" + long + "\nPrivate-MAC: no": "PuTTY\nPrivate-Lines: 60…[redacted]-MAC: no",
		"PASS hunter22\n" + strings.Repeat("x ", 100) + "\nPASS hunter23": "PASS …[redacted]\n" +
			strings.Repeat("x ", 100) + "\nPASS …[redacted]",
		"PASS hunter22\n" + strings.Repeat("x ", 150) + "\nPASS hunter23": "PASS …[redacted]\n" +
			strings.Repeat("x ", 150) + "\nPASS …[redacted]",
		"see session-eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jV": "see session-eyJ…[redacted]",
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q)\n got %q\nwant %q", text, got, want)
		}
	}
}
