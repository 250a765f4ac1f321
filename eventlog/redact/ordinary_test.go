package redact

import (
	"encoding/base64"
	"math/rand/v2"
	"strings"
	"testing"
)

// ordinaryShapes are lines of logs, lists and programs without a secret. fillShape replaces the placeholders, such as
// {w8}.
var ordinaryShapes = strings.Split(strings.TrimSpace(`
--- PASS: TestToken{n3} (0.0{n2}s)
ok  	example.com/mod/pkg{n2}	0.{n3}s	coverage: {n2}.1% of statements
=== RUN   TestPassword/case_{n3}
npm warn deprecated glob@7.{n2}.3: Glob versions prior to v9 are no longer supported
npm http fetch GET 200 https://registry.npmjs.org/left-pad 1{n2}ms (cache hit)
added {n3} packages, and audited {n3} packages in {n2}s
commit {h40}
{h8} Fix the token counter (#{n4})
index {h8}..{h8} 100644
Merge: {h8} {h8}
sha256:{h64}
{h64}  dist/app-{n2}.tar.gz
{h32} *image.iso
"integrity": "sha512-{b86}==",
"resolved": "https://registry.npmjs.org/token-{n3}/-/token-1.0.{n2}.tgz#{h40}",
github.com/example/mod v1.{n2}.0 h1:{b43}=
github.com/example/mod v0.0.0-2026{n10}-{h12}/go.mod h1:{b43}=
checksum = "{h64}"
request_id={h8}-{h4}-{h4}-{h4}-{h12} status=200 bytes={n5}
{"sessionId":"{h8}-{h4}-7{h3}-{h4}-{h12}","id":{n3}}
{"input_tokens":{n4},"output_tokens":{n3},"cache_read_input_tokens":{n6}}
{"usage":{"totalTokens":{n5},"inputTokens":{n4},"thoughtTokens":{n3}}}
{"prompt_tokens": {n4}, "completion_tokens": {n3}, "total_tokens": {n5}}
tokens: {n5} in, {n4} out; max_tokens={n4}
token_count={n4} tokens_per_second={n2}.{n2}
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b120}
src="data:image/svg+xml;base64,{b80}"
goroutine {n2} [running]: main.login(0xc000{h6}, {0xc000{h6}, 0x8})
	/home/bob/src/auth/token.go:{n3} +0x{h3}
    at Object.<anonymous> (/srv/app/node_modules/jsonwebtoken/index.js:{n2}:{n2})
    at getToken (webpack-internal:///./src/auth.ts:{n3}:11)
  File "/usr/lib/python3/site-packages/auth/password.py", line {n3}, in check
Exception in thread "main" java.lang.IllegalStateException: token {n2} expected
Nov 22 10:{n2}:01 host sshd[{n4}]: Accepted publickey for bob from 10.0.{n2}.7 port {n5} ssh2: RSA SHA256:{b43}
Nov 22 10:{n2}:02 host sshd[{n4}]: Failed password for invalid user admin from 10.0.0.{n2} port {n5} ssh2
time=2026-11-22T10:{n2}:00Z level=INFO msg="token refreshed" user=bob expires_in={n4}
2026/11/22 10:{n2}:03 error: unexpected token: identifier at line {n3}
SyntaxError: Unexpected token } in JSON at position {n3}
error: invalid token: missing field at {n3}
warning: password is required for user bob{n2}
Please enter your password: 
Password must have at least {n2} characters
Enter passphrase for key '/home/bob/.ssh/id_{n2}': 
func login(user, password string, n{n2} int) error {
	if password == "" || token == nil { // {n3}
	password := os.Getenv("DB_PASSWORD_{n2}")
	token, err := client.Token(ctx, {n2})
	cfg.Password = flags.Password // {n2}
	return &Config{Token: token, Password: cfg.password, Port: {n4}}
	Token    string // {n2}
const tokenHeader = "X-Token-{n2}"
password = os.environ["DB_PASSWORD_{n2}"]
api_key = os.getenv("API_KEY_{n2}")
def connect(user: str, password: str = None, port: int = {n4}):
    self.token = token  # {n3}
    password=self.password, port={n4},
client = Client(api_key=settings.API_KEY, timeout={n2})
const token = await getToken({n2});
const { password, token } = req.body; // {n3}
  password: process.env.DB_PASSWORD, // {n2}
  apiKey: config.apiKey, retries: {n2},
interface Login{n2} { password: string; token?: string }
  token: string; // {n2}
const apiKey{n2} = import.meta.env.VITE_API_KEY;
fetch(url{n2}, { credentials: 'include', headers: { Authorization: token } })
<input type="password" name="password{n2}" placeholder="Password">
<label for="password{n2}">Password:</label>
<password>${db.password.{n2}}</password>
String password = request.getParameter("password{n2}");
private final String token; // {n2}
public void setPassword{n2}(String password) { this.password = password; }
let token: Option<String> = None; // {n2}
pub fn token(&self) -> &str { &self.token } // {n2}
fn login{n2}(password: &str) -> Result<Token, Error> {
$password = $_POST['password'] ?? null; // {n2}
password: <%= ENV["DB_PASSWORD_{n2}"] %>
      password: ${DB_PASSWORD_{n2}}
      token: ${{ secrets.GITHUB_TOKEN }} # {n2}
  password: "{{ vault_db_password_{n2} }}"
password = var.db_password_{w2}
api_token = data.vault.token.value # {n2}
PASSWORD=$DB_PASSWORD TOKEN=\${TOKEN:-} ./run{n2}.sh
curl -H "Authorization: Bearer $TOKEN" https://example.com/{n3}
curl -u "$USER:$PASSWORD" https://example.com/{n3}
docker run -p {n4}:{n4} -e TOKEN nginx
mkdir -p build/{n3} && cp -p a b
SELECT id FROM users WHERE password = ? AND token = $1 LIMIT {n2};
ALTER TABLE users ADD COLUMN password VARCHAR({n3}) NOT NULL;
public_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43}"
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQ{b200} bob@host
client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JS{b200}
certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JS{b200}
cache_key: build-{h40}
primary_key=id{n3} foreign_key=user_{n2}
sort_key = "created_at#{n10}"
"key": "user:{n8}:profile"
kubectl get secret my-app-{n2} -n default
secret/my-app-{n2} created
secretName: my-tls-{n2}
  keyRef: { name: app-{n2}, key: password }
auth: enabled ({n2})
author: Bob <bob{n2}@example.com>
session: {n4} started
compass: north, bypass={n2}, first_pass={n2}
monkey={n2} donkey={n2} keyboard=us
arn:aws:iam::{n12}:role/token-service-{n2}
https://example.com/search?q=password&page={n2}
https://example.com/a?id={n6}&sort=key#token
git@github.com:example/token{n2}.git
x-request-id: {h32}
etag: "{h40}"
Set the environment variable API_KEY, see docs/token.md section {n2}
The bearer of token {n2} may pass
{"type":"tool_call","title":"grep -rn password src/{n2}","kind":"search"}
{"jsonrpc":"2.0","id":{n2},"result":{"stopReason":"end_turn"}}
+	password := r.FormValue("password") // {n2}
-    token = parse_token(line, {n2})
@@ -{n2},7 +{n2},9 @@ func (t *Token) String() string {
drwxr-xr-x 2 root root 4096 Nov 22 10:{n2} secrets
{w8}.{w8}@{w6}.example.com: 250 2.0.0 OK
i18n.password.label{n2} = Your password
"password": "Enter your password", // {n2}
"error.token": "The token has expired ({n2})",
`), "\n")

// TestOrdinaryLines checks that at most 1 in 100 of 2,000 harmless lines changes.
func TestOrdinaryLines(t *testing.T) {
	l := lot{rand.New(rand.NewPCG(20, 26))}
	const lines = 2000
	changed := 0
	for i := range lines {
		line := l.fillShape(ordinaryShapes[i%len(ordinaryShapes)])
		if got := Text(line); got != line {
			changed++
			t.Logf("%s\n=> %s", line, got)
		}
	}
	if changed*100 > lines {
		t.Errorf("%d of %d lines are changed", changed, lines)
	}
}

// TestOrdinaryBase64 checks that base64 without a key stays unchanged.
func TestOrdinaryBase64(t *testing.T) {
	l := lot{rand.New(rand.NewPCG(1, 2))}
	for range 200 {
		text := base64.StdEncoding.EncodeToString([]byte(l.of(alnum+" \n", 300)))
		if got := Text(text); got != text {
			t.Errorf("%s\n=> %s", text, got)
		}
	}
}
