package redact

import (
	"encoding/base64"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// The keys consist of parts, so that secret scanners do not report this file.
var (
	hex40  = strings.Repeat("0a1b2c3d", 5)
	mixed  = strings.Repeat("aB3dE6gH", 5)
	antKey = "sk-ant-" + "api03-" + mixed + "_-AA"
	ghKey  = "ghp_" + mixed[:36]
	jwtKey = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	pemKey = "-----BEGIN RSA PRIVATE KEY-----\n" + mixed + "\n" + mixed + "/+==\n-----END RSA PRIVATE KEY-----"
)

// masked has texts with the secret that must be masked in each.
var masked = []struct{ name, text, secret string }{
	{"anthropic", "key " + antKey, mixed},
	{"openai project", "sk-proj-" + mixed, mixed},
	{"openai", "using sk-" + mixed, mixed},
	{"perlica", "Authorization: Basic perlica_tok_" + strings.ToLower(mixed[:36]), strings.ToLower(mixed[:36])},
	{"deepseek", "sk-" + hex40[:32], hex40[:32]},
	{"openrouter", "sk-or-v1-" + hex40, hex40},
	{"after an escaped newline", `{"text":"line\n` + antKey + `"}`, mixed},
	{"after an escaped bracket", `{"text":"\u003c` + ghKey + `"}`, mixed[:36]},
	{"ghp", ghKey, mixed[:36]},
	{"gho", "gho_" + mixed[:36], mixed[:36]},
	{"ghs", "x:ghs_" + mixed[:36] + ";", mixed[:36]},
	{"ghu", "ghu_" + mixed[:36], mixed[:36]},
	{"ghr", "ghr_" + mixed[:36], mixed[:36]},
	{"github_pat", "github_pat_11ABCDEFG0" + mixed, mixed},
	{"AKIA", "AKIA" + "IOSFODNN7EXAMPLE", "IOSFODNN7EXAMPLE"},
	{"ASIA", "(ASIA" + "IOSFODNN7EXAMPLE)", "IOSFODNN7EXAMPLE"},
	{"aws secret", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "wJalr"},
	{"aws secret camel", `{"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"}`, "wJalr"},
	{"slack", "xoxb-" + "123456789012-abcdefghij", "123456789012"},
	{"matrix", "synapse made syt_YWxpY2U_" + mixed[:20] + "_0b1C2d", mixed[:20]},
	{"ntfy", "ntfy made tk_" + strings.ToLower(mixed[:29]), strings.ToLower(mixed[:29])},
	{"google", "AIza" + mixed[:35], mixed[:35]},
	{"gitlab", "glpat-" + mixed[:20], mixed[:20]},
	{"npm", "//registry/:_x npm_" + mixed[:36], mixed[:36]},
	{"npmrc", "//registry.npmjs.org/:_authToken=abcdef", "abcdef"},
	{"hugging face", "hf_" + mixed[:34], mixed[:34]},
	{"jwt", "token is " + jwtKey, "dozjgNry"},
	{"jwt unsigned", "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxMjM0In0.", "eyJzdWIi"},
	{"pem", pemKey, mixed},
	{"pem in json", mustJSON(map[string]string{"file": pemKey}), mixed},
	{"pem in json in json", mustJSON(mustJSON(map[string]string{"file": pemKey})), mixed},
	{"pem without end", `{"t":"` + strings.ReplaceAll(pemKey[:90], "\n", `\n`) + `"}`, mixed[:8]},
	{"pgp", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + mixed + "\n-----END PGP PRIVATE KEY BLOCK-----", mixed},
	{"password=", "password=hunter2", "hunter2"},
	{"password= and more", "connect: password=hunter2&user=bob", "hunter2"},
	{"password: yaml", "password: hunter2", "hunter2"},
	{"PASSWORD", "DB_PASSWORD=hunter2", "hunter2"},
	{"PGPASSWORD", "PGPASSWORD=hunter2 psql", "hunter2"},
	{"password with spaces", `password="hunter 2 three"`, "three"},
	{"single quotes", `export API_TOKEN='abc def'`, "abc def"},
	{"passwd", "passwd=hunter2", "hunter2"},
	{"pwd", "pwd=hunter2", "hunter2"},
	{"mysql", "MYSQL_PWD=hunter2", "hunter2"},
	{"db pass", "DB_PASS=hunter2", "hunter2"},
	{"secret=", "client_secret=hunter2", "hunter2"},
	{"token=", "https://h/x?token=abc123&y=1", "abc123"},
	{"token go-escaped &", `{"u":"https://h/x?token=abc123\u0026y=1"}`, "abc123"},
	{"sas", "https://h/x?X-Amz-Signature=deadbeef", "deadbeef"},
	{"toml", `api_key = "hunter2"`, "hunter2"},
	{"go code", `apiKey := "hunter2"`, "hunter2"},
	{"comparison", `if password == "hunter2" {`, "hunter2"},
	{"ruby", `:password => "hunter2"`, "hunter2"},
	{"index", `env["API_KEY"] = "hunter2"`, "hunter2"},
	{"json api_key", `{"api_key": "hunter2"}`, "hunter2"},
	{"json apiKey", `{"apiKey":"hunter2","n":1}`, "hunter2"},
	{"json x-api-key", `{"x-api-key":"hunter2"}`, "hunter2"},
	{"json escaped quote", `{"password":"hun\"ter2"}`, "ter2"},
	{"json escaped backslash", `{"password":"hun\\","x":"ter2"}`, "hun"},
	{"json number", `{"password":12345678}`, "12345678"},
	{"json in json", `{"raw":"{\"api_key\":\"hunter2\"}"}`, "hunter2"},
	{"json in json in json", mustJSON(mustJSON(mustJSON(map[string]string{"token": `a"hunter2`}))), "hunter2"},
	{"text in json", `{"msg":"password=hunter2","x":1}`, "hunter2"},
	{"text in json, newline", `{"msg":"a\npassword=hunter2\nb"}`, "hunter2"},
	{"text in json, pwd", `{"msg":"a\npwd=hunter2\nb"}`, "hunter2"},
	{"text in json, backslash", `{"msg":"password=hun\\ter2 b"}`, "ter2"},
	{"quoted in json", `{"cmd":"export TOKEN=\"hunter2 x\" && y"}`, "hunter2"},
	{"python", `{'password': 'hunter2'}`, "hunter2"},
	{"authorization", `{"authorization": "Bearer hunter2"}`, "hunter2"},
	{"header", "Authorization: Bearer hunter2", "hunter2"},
	{"header in curl", `curl -H 'Authorization: token hunter2' https://h`, "hunter2"},
	{"header basic", "authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l", "YWxhZ"},
	{"proxy", "Proxy-Authorization: Basic YWxhZGRpbjpvcGVuc2VzYW1l", "YWxhZ"},
	{"bearer", "sent bearer abcdefgh12345678", "abcdefgh12345678"},
	{"basic", "sent Basic YWxhZGRpbjpvcGVuc2VzYW1l", "YWxhZ"},
	{"cookie", "Cookie: sid=abc; theme=dark", "abc"},
	{"set-cookie", `{"set-cookie":"sid=abc; Path=/"}`, "abc"},
	{"url", "postgres://bob:hunter2@db:5432/x", "hunter2"},
	{"url with @", "postgres://bob:hun@ter2@db/x", "ter2"},
	{"url escaped", `{"u":"https:\/\/bob:hunter2@h\/x"}`, "hunter2"},
	{"url user only", "https://" + hex40 + "@github.com/x", hex40},
	{"url no user", "redis://:hunter2@h", "hunter2"},
	{"telegram", "https://api.telegram.org/bot123456:AA" + mixed[:33] + "/getMe", mixed[:33]},
	{"acp env", `{"env":[{"name":"GITHUB_TOKEN","value":"hunter2"}]}`, "hunter2"},
	{"acp header", `{"headers":[{"name": "Authorization", "value": "Bearer hunter2"}]}`, "hunter2"},
	{"acp env nested", mustJSON(`{"env":[{"name":"GITHUB_TOKEN","value":"hunter2"}]}`), "hunter2"},
	{"flag", "tool --api-key hunter2 --x", "hunter2"},
	{"flag=", "tool --client-secret=hunter2", "hunter2"},
	{"flag array", `{"args":["--auth-token","hunter2"]}`, "hunter2"},
	{"second line", "{\"a\":1}\n{\"token\":\"hunter2\"}\n", "hunter2"},
	{"torn json", `"a":1,"token":"hunter2`, "hunter2"},
	{"two", "password=hunter2 password=hunter2", "hunter2"},
	{"beside a mask", "password=[redacted] token=hunter2x", "hunter2"},
}

// plain lists texts that must stay unchanged.
var plain = []string{
	"",
	"hello world",
	"list[int] [/INST] a = b: c",
	`{"input_tokens":123,"output_tokens":4567,"max_tokens":8192}`,
	`{"usage":{"inputTokens":12,"cachedReadTokens":99,"totalTokens":1111}}`,
	`{"tokens": 123, "token_count": 7, "maxToken":5, "token": 5}`,
	"input_tokens=17 max_tokens=4096 token_count=3 tokens=9",
	`{"sessionId":"0192f3a4-7c1d-7e2f-8a3b-4c5d6e7f8091","id":3}`,
	"commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12",
	"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	base64.StdEncoding.EncodeToString([]byte("ordinary data, nothing to see here, move along")),
	"eyJhIjoxLCJiIjpbMSwyLDNdfQ",
	"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
	"https://example.com:8080/a@b?c=d",
	"git@github.com:perlica/perlica.git ssh://git@github.com/x",
	"risk-management-framework-2024-edition task-runner-for-1234567890123456789",
	"sk-folding-cube-animation-two-columns",
	"the bearer of bad news; basic understanding; Basic authentication",
	"unexpected token: identifier",
	"error: unexpected token '}' in JSON",
	"password: string; token: string",
	"func login(password string, token Token) error",
	"if token == nil || password != old {",
	"tokenizer.json secretary: Bob, monkey=1 keyboard=2 donkey: 3",
	"password_file=/etc/x secret_name=y token_type=bearer",
	"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
	"PWD=/home/me/shop OLDPWD=/tmp",
	`{"k":"api_key=","x":"y"}`,
	`{"method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":"agent_message_chunk"}}}`,
	`{"name":"PATH","value":"/usr/bin"}`,
	`{"password":null,"token":"","secret":true}`,
	"npm_config_registry=https://registry.npmjs.org",
	"AKIAK AKIA1234 ghp_short sk-ant- sk-1",
	"12:34:56 10.0.0.1:8080 std::token::next",
	"first_pass=3 compass: north bypass=1",
	"path=C:\\token\\new",
	"日本語 パスワード émoji 👩‍💻",
}

func TestRedactMasks(t *testing.T) {
	for _, tt := range masked {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(tt.text, tt.secret) {
				t.Fatalf("the secret %q is not in the text %q", tt.secret, tt.text)
			}
			got := Text(tt.text)
			if strings.Contains(got, tt.secret) || !strings.Contains(got, redacted) {
				t.Errorf("Text(%q) = %q", tt.text, got)
			}
			checkRedact(t, tt.text)
		})
	}
}

func TestRedactLeavesAlone(t *testing.T) {
	for _, text := range plain {
		if got := Text(text); got != text {
			t.Errorf("Text(%q) = %q", text, got)
		}
	}
}

func TestRedactForm(t *testing.T) {
	for text, want := range map[string]string{
		"x " + antKey + " y":                      "x sk-ant-…[redacted] y",
		`{"api_key":"` + antKey + `","n":1}`:      `{"api_key":"sk-ant-…[redacted]","n":1}`,
		"ANTHROPIC_API_KEY=" + antKey + "\nnext":  "ANTHROPIC_API_KEY=sk-ant-…[redacted]\nnext",
		`{"authorization": "Bearer hunter2"}`:     `{"authorization": "Bearer …[redacted]"}`,
		"https://bob:hunter2@h/x":                 "https://bob:[redacted]@h/x",
		"-----BEGIN PRIVATE KEY-----\nab12\n":     "-----BEGIN PRIVATE KEY-----…[redacted]",
		`{"raw":"{\"api_key\":\"hunter2\"}"}`:     `{"raw":"{\"api_key\":\"[redacted]\"}"}`,
		`{"password":1234,"x":5}`:                 `{"password":"[redacted]","x":5}`,
		`{"a":"password=hunter2\nuser=bob"}`:      `{"a":"password=[redacted]\nuser=bob"}`,
		"curl -H 'Cookie: a=b; c=d' https://h/":   "curl -H 'Cookie: [redacted]' https://h/",
		"bot123456:AA" + mixed[:33] + "/getMe":    "bot123456:AA…[redacted]/getMe",
		`["--token","hunter2","--verbose","run"]`: `["--token","…[redacted]","--verbose","run"]`,
	} {
		if got := Text(text); got != want {
			t.Errorf("Text(%q)\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestSecretKeys(t *testing.T) {
	for name, want := range map[string]bool{
		"password": true, "PASSWORD": true, "userPassword": true, "api_key": true, "apikey": true,
		"APIKey": true, "X-API-Key": true, "OPENAI_API_KEY": true, "token": true, "accessToken": true,
		"authtoken": true, "github_token": true, "secret": true, "client_secret": true, "cookie": true,
		"Set-Cookie": true, "authorization": true, "private_key": true, "pwd": true, "credentials": true,
		"tokens": false, "input_tokens": false, "token_count": false, "max_token": false, "key": false,
		"keys": false, "tokenizer": false, "PWD": false, "monkey": false, "session_id": false,
		"secret_name": false, "time_to_first_token": false, "cookie_count": false, "": false, "__": false,
	} {
		if got := nameOf(name) == secretName; got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

// checkRedact checks the properties that must hold for every text.
func checkRedact(t *testing.T, s string) {
	t.Helper()
	once := Text(s)
	if twice := Text(once); twice != once {
		t.Errorf("not idempotent: %q\n once %q\ntwice %q", s, once, twice)
	}
	if utf8.ValidString(s) && !utf8.ValidString(once) {
		t.Errorf("invalid UTF-8: %q from %q", once, s)
	}
	if json.Valid([]byte(s)) && !json.Valid([]byte(once)) {
		t.Errorf("invalid JSON: %q from %q", once, s)
	}
}

func FuzzRedact(f *testing.F) {
	for _, tt := range masked {
		f.Add(tt.text)
	}
	for _, s := range plain {
		f.Add(s)
	}
	for _, p := range corpus() {
		f.Add(p.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkRedact(t, s)
		checkRedact(t, mustJSON(map[string]string{"msg": s, s: "value"}))
		checkRedact(t, mustJSON(map[string]any{"msg": mustJSON([]string{s, "x"}), "y": 1}))
	})
}

func mustJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

const ordinary = `{"time":"2026-11-21T03:15:17.042Z","level":"DEBUG","msg":"frame received","run":"0192f3a4-7c1d-7e2f-8a3b-4c5d6e7f8091","method":"session/update","kind":"agent_message_chunk","bytes":213,"dir":"in"}`

func BenchmarkRedactOrdinary(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(ordinary)))
	for b.Loop() {
		Text(ordinary)
	}
}

func BenchmarkRedactSecret(b *testing.B) {
	line := `{"level":"INFO","msg":"env","ANTHROPIC_API_KEY":"` + antKey + `"}`
	b.ReportAllocs()
	for b.Loop() {
		Text(line)
	}
}

// TestRedactIsLinear masks a text and a text that is 16 times as long. A rule of quadratic time takes 256 times as long
// for the second text. The test compares two times of one run, because a slow or loaded machine changes both.
func TestRedactIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector, which takes short tests, takes ten times as long")
	}
	for _, part := range []string{
		"a", "=", `\\`, "sk-", "eyJ", "eyJabcdefghi.", "://", "://a:b@", "-----BEGIN PRIVATE KEY-----",
		"token", "token: ", "password=", "password='\n", `token="`, "token='", `token=\"`, `"token":`,
		`"name":"`, `"name":"token","value":"`, "cookie: a", "Bearer ", "--token ", `{"a":"token=`,
		"<password>", "curl -u ", "token=\"\"\"a", "password: |\n a\n", "\x1b[1m", "a1b2c3d4e5\n", "login a password ",
		"Authorization: Digest ", "-----END ", "test_", "1//0", "define(", "a_b.c-token",
		`define("token", "`, "[token] => ", "PASS ", "\x1b]", "\x1b(B", "password is ", "token%3D", `variable "token" {`,
		"password '", "set token ",
		"--token --token '", `var token string = "`, "<token><value>", `setToken("`, "name: token\n", "$6$a$", "token |",
		"e string(", "my key: ",
	} {
		for _, begin := range []string{"", `{"a":"`} {
			took := func(length int) time.Duration {
				start := time.Now()
				Text(begin + strings.Repeat(part, length/len(part)))
				return time.Since(start)
			}
			short := max(took(1<<14), took(1<<14), time.Millisecond)
			long := took(1 << 18)
			for n := 0; n < 2 && long > 80*short; n++ { // The machine may be slow once, but not each time.
				long = min(long, took(1<<18))
			}
			if long > 80*short {
				t.Fatalf("%s%s…: %v for the short text, and %v for 16 times its length", begin, part, short, long)
			}
		}
	}
}

// TestNothingIsCompiledAtTheStart checks that no pattern is compiled before the first use.
func TestNothingIsCompiledAtTheStart(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %v, %v; want err == nil && len(files) != 0", files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "init" {
				t.Errorf("%s has an init", name)
			}
			vars, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			ast.Inspect(vars, func(n ast.Node) bool {
				if _, ok := n.(*ast.FuncLit); ok {
					return false // a function literal runs later
				}
				if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "MustCompile" {
					t.Errorf("%s compiles a pattern when the program starts", name)
				}
				return true
			})
		}
	}
}
