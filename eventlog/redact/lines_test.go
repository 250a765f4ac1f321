package redact

import (
	"slices"
	"strings"
	"testing"
)

// TestLines checks that a key over several lines is masked up to its end, and that the lines after the key stay
// unchanged.
func TestLines(t *testing.T) {
	body := strings.Repeat("aB3dE6gH", 8)
	for name, c := range map[string]struct{ in, want []string }{
		"pem": {
			[]string{"reading", "-----BEGIN RSA PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED", "", body, body[:20] + "==",
				"-----END RSA PRIVATE KEY-----", "done, all is well"},
			[]string{"reading", "-----BEGIN RSA PRIVATE KEY-----", Mask, Mask, Mask, Mask, Mask, "done, all is well"},
		},
		"pgp": {
			[]string{"-----BEGIN PGP PRIVATE KEY BLOCK-----", "", body, "=aB3d", "-----END PGP PRIVATE KEY BLOCK-----", "next"},
			[]string{"-----BEGIN PGP PRIVATE KEY BLOCK-----", Mask, Mask, Mask, Mask, "next"},
		},
		"with a logger's prefix": {
			[]string{"12:01 ERR -----BEGIN OPENSSH PRIVATE KEY-----", "12:01 ERR " + body,
				"12:01 ERR -----END OPENSSH PRIVATE KEY-----"},
			[]string{"12:01 ERR -----BEGIN OPENSSH PRIVATE KEY-----", Mask, Mask},
		},
		"without an end": {
			[]string{"-----BEGIN PRIVATE KEY-----", body, "and then it stopped, without a word", body},
			[]string{"-----BEGIN PRIVATE KEY-----", Mask, "and then it stopped, without a word", body},
		},
		"a certificate": {
			[]string{"-----BEGIN CERTIFICATE-----", body, "-----END CERTIFICATE-----"},
			[]string{"-----BEGIN CERTIFICATE-----", body, "-----END CERTIFICATE-----"},
		},
		"a key that goes on": {
			[]string{"using sk-ant-" + "api03-" + body, body, "and a word"},
			[]string{"using sk-ant-" + Mask, Mask, "and a word"},
		},
		"a value in the next line": {
			[]string{"password:", "  aB3dE6gH1", "ok"},
			[]string{"password:", "  [redacted]", "ok"},
		},
	} {
		next := (*Redactor)(nil).Lines()
		var got []string
		for _, line := range c.in {
			got = append(got, string(next([]byte(line))))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
	}
	next := newRedactor(t, `CUST-[0-9]{4}`).Lines()
	if got := string(next([]byte("for CUST-1234"))); got != "for [redacted]" {
		t.Errorf("one's own pattern: %q", got)
	}
}

// TestLinesHasABound checks that a private key without an end line does not mask all the following output.
func TestLinesHasABound(t *testing.T) {
	next := (*Redactor)(nil).Lines()
	next([]byte("-----BEGIN PRIVATE KEY-----"))
	for range keyLines {
		next([]byte("aB3dE6gH"))
	}
	if got := string(next([]byte("word"))); got != "word" {
		t.Errorf("behind the bound: %q", got)
	}
}

func TestArgs(t *testing.T) {
	in := []string{"agent", "--acp", "--api-key", "hunter2", "--token=hunter2", "--key", "hunter2", "-v",
		"API_KEY=hunter2", "--header", "Authorization: Bearer hunter2", "sk-ant-" + "api03-" + mixed, "--max-tokens", "4096"}
	want := []string{"agent", "--acp", "--api-key", "[redacted]", "--token=[redacted]", "--key", "[redacted]", "-v",
		"API_KEY=[redacted]", "--header", "Authorization: Bearer [redacted]", "sk-ant-…[redacted]", "--max-tokens", "4096"}
	if got := Args(in); !slices.Equal(got, want) {
		t.Errorf("\n got %q\nwant %q", got, want)
	}
	if got := Args([]string{"curl", "-u", "bob:hunter2", "<x>"}); !slices.Equal(got,
		[]string{"curl", "-u", "bob:[redacted]", "<x>"}) {
		t.Errorf("a program's own flags: %q", got)
	}
}
