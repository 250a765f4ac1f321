package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// plainLines are templates of lines without a secret: logs, hashes, ids, images, programs.
var plainLines = strings.Split(strings.TrimSpace(`
‹n4›-‹n2›-‹n2›T10:‹n2›:‹n2›.‹n3›Z INFO  server.go:‹n3› listening on 0.0.0.0:‹n4›
level=info ts=‹n10›.‹n3› caller=main.go:‹n3› msg="request done" status=200 dur=‹n2›ms
[‹n10›.‹n6›] usb 1-‹n1›: new high-speed USB device number ‹n2› using xhci_hcd
10.0.‹n2›.‹n2› - - [22/Nov/2026:10:00:‹n2› +0000] "GET /assets/app.‹h8›.js HTTP/1.1" 200 ‹n5›
E‹n4› ‹n6›       1 reflector.go:‹n3›] k8s.io/client-go: failed to list *v1.Secret: secrets is forbidden
kubelet: MountVolume.SetUp succeeded for volume "kube-api-access-‹s5›" pod "api-‹s9›-‹s5›"
systemd[1]: Started session-‹n4›.scope - Session ‹n4› of User me.
sshd[‹n5›]: pam_unix(sshd:session): session opened for user me(uid=1000) by (uid=0)
kernel: audit: type=1400 audit(‹n10›.‹n3›:‹n4›): apparmor="DENIED" profile="x" pid=‹n5›
panic: runtime error: index out of range [‹n2›] with length ‹n2›
goroutine ‹n3› [chan receive, ‹n2› minutes]:
	/src/auth/tokens.go:‹n3› +0x‹h4›
    at parseToken (/srv/app/dist/main.‹h8›.js:1:‹n6›)
  File "/app/secrets/views.py", line ‹n3›, in get_password
Caused by: java.net.ConnectException: Connection refused (host: db, port: ‹n4›)
main.go:‹n3›:‹n2›: undefined: passwordToken
src/auth.ts(‹n3›,‹n2›): error TS2304: Cannot find name 'token'.
error[E0425]: cannot find value 'secret' in this scope --> src/lib.rs:‹n3›:‹n2›
warning: unused variable: 'token' at src/main.rs:‹n3›
ok  	example.com/auth/token	0.‹n3›s	coverage: ‹n2›.‹n1›% of statements
--- FAIL: TestPassword/empty_token (0.‹n2›s)
PASS src/components/Password.test.tsx (‹n1›.‹n3› s)
✓ resets the password (‹n2› ms)
commit ‹h40›
Author: Ann Token <ann@example.net>
‹h40› refs/heads/feature/token-refresh
index ‹h10›..‹h10› 100644
‹h7› (HEAD -> main) auth: refresh the token before it expires
Merge branch 'password-reset' of example.net:a/b into main (‹h7›)
From ‹h40› Mon Sep 17 00:00:00 2001
‹h64›  auth-token-1.‹n2›.tar.gz
‹h32›  secret.iso
‹h128›  image.img
SHA256 (token.tgz) = ‹h64›
sha512-‹b86›==
"integrity": "sha512-‹b86›==",
      integrity: sha384-‹b64›
integrity="sha256-‹b43›=" crossorigin="anonymous"
h1:‹b43›=
"shasum": "‹h40›",
  digest: sha256:‹h64›
Digest: SHA-256=‹b43›=
ETag: "‹h32›"
If-None-Match: W/"‹h16›"
Content-MD5: ‹b22›==
Last-Modified: Sun, ‹n2› Nov 2026 10:00:00 GMT
X-Request-Id: ‹h8›-‹h4›-‹h4›-‹h4›-‹h12›
X-Amz-Request-Id: ‹u16›
X-Trace-Id: ‹h32›
traceparent: 00-‹h32›-‹h16›-01
correlation-id: ‹h8›-‹h4›-‹h4›-‹h4›-‹h12›
{"id":"‹h8›-‹h4›-‹h4›-‹h4›-‹h12›","created":‹n10›,"model":"m-‹n1›"}
{"jsonrpc":"2.0","id":‹n4›,"result":{"sessionId":"‹h8›-‹h4›-‹h4›-‹h4›-‹h12›"}}
{"type":"tool_use","id":"toolu_‹w24›","name":"read_file","input":{"path":"src/token.go"}}
{"id":"msg_‹w24›","usage":{"input_tokens":‹n4›,"output_tokens":‹n3›}}
{"id":"chatcmpl-‹w29›","object":"chat.completion","created":‹n10›}
call_‹w24›
toolu_‹w24›
uuid: ‹h8›-‹h4›-4‹h3›-‹h4›-‹h12›
urn:uuid:‹h8›-‹h4›-‹h4›-‹h4›-‹h12›
UUID="‹h8›-‹h4›-‹h4›-‹h4›-‹h12›" / ext4 defaults 0 1
01‹u24›
_id: ObjectId("‹h24›")
arn:aws:iam::‹n12›:role/token-reader
arn:aws:secretsmanager:eu-west-1:‹n12›:secret:db-‹w6›
i-0‹h16› running 10.0.0.‹n2›
projects/‹n12›/secrets/db-password/versions/‹n1›
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA‹b160›==
data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP‹b40›
background:url(data:image/svg+xml;base64,PHN2Zy‹b120›)
src: url("data:font/woff2;base64,d09GMgABAAAA‹b160›") format("woff2")
<img src="data:image/jpeg;base64,/9j/4AAQSkZJRgABAQ‹b160›">
{"data":"iVBORw0KGgo‹b200›","mimeType":"image/png"}
//# sourceMappingURL=data:application/json;base64,eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbXX0=
!function(e,t){"object"==typeof exports?module.exports=t():e.token=t()}(this,function(){return ‹n4›});
var a=function(t){return t.password||t.secret?1:‹n2›},b=a({password:t,secret:e});
e.exports={token:n,secret:r,apiKey:o};const i=n(‹n4›);
t.setPassword=function(e){this.password=e,this.token=null};var s=t.getToken();
case"password":return e.type="password",e.token=t[‹n1›];
const{token:e,password:t,...n}=this.props;return e&&t?n:‹n2›
a.headers.Authorization="Bearer ".concat(e.token),a.url="/v‹n1›/x"
function u(e){for(var t=[],n=0;n<e.length;n++)t.push(e.charCodeAt(n)^‹n3›);return t}
//	token = 1*tchar
	encodeUserPassword: "encodeUserPassword",
	{name: "token", kind: tokenKind‹n1›, value: nil},
	case token.STRING, token.CHAR: // ‹n2›
	p.expect(token.LPAREN) // ‹n3›
	tok, lit := s.scan(); if tok == token.EOF { return ‹n2› }
	for tok := range tokens { count[tok]++ } // ‹n2›
	Password: func(r *Request) string { return r.form("password", ‹n1›) },
	password.addEventListener("input", () => setToken(‹n1›));
	assert.Equal(t, "secret", name‹n1›)
	fmt.Printf("token=%q password=%t n=%d\n", tok, ok, ‹n2›)
	log.info("password changed for user {}", user.id); // ‹n2›
	@Value("${app.token}") private String token‹n1›;
	let token = std::env::var("TOKEN_‹n1›")?;
	password = getpass.getpass("Password ‹n1›: ")
	parser.add_argument("--password", help="password of the user", default=None) # ‹n2›
	KEY_LENGTH = ‹n4›  # bits of the secret key
	static const int kTokenSize = ‹n3›;
	if (!strcmp(arg, "--token")) opts.token = argv[++i]; /* ‹n2› */
secret "db-password-‹n2›" created
password for user ann will expire in ‹n2› days
The token bucket holds ‹n3› requests a second.
Passwords do not match (attempt ‹n1›)
tokens per second: ‹n3›.‹n2›, tokens left: ‹n5›
nobody:x:65534:‹n5›:nobody:/nonexistent:/usr/sbin/nologin
host.example.net:‹n4›:10:20:30
cache:‹n4›:hit:‹n3›:miss
app.js:1234:56:token:expected
0000‹n4›: 6c6f 7265 6d20 6970 7375 6d20 646f 6c6f  lorem ipsum dolo
-rw-r--r-- 1 me me ‹n5› Nov 22 10:00 password.txt
routing_key=orders.created.‹n2› exchange=shop
first_pass=‹n3› second_pass=‹n3› render_pass=shadow
`), "\n")

// TestPlainLines checks that at most one in a hundred lines without a secret changes.
func TestPlainLines(t *testing.T) {
	const each = 5
	lot := rand.New(rand.NewPCG(9, 10))
	alarms := 0
	for _, template := range plainLines {
		for range each {
			text, _ := filled(template, lot)
			wrapped := mustJSON(map[string]string{"text": text})
			if masked := Text(text); masked != text || Text(wrapped) != wrapped {
				alarms++
				t.Logf("changed: %q\n      -> %q\n      -> %s", text, masked, Text(wrapped))
			}
		}
	}
	lines := each * len(plainLines)
	t.Logf("%d of %d changed", alarms, lines)
	if lines < 500 || 100*alarms > lines {
		t.Errorf("%d of %d lines are changed", alarms, lines)
	}
}
