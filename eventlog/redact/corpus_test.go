package redact

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// lot makes random values for the corpus, so the corpus has no real key.
type lot struct{ *rand.Rand }

const (
	lower    = "abcdefghijklmnopqrstuvwxyz"
	digits   = "0123456789"
	alnum    = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + digits
	hexadec  = digits + "abcdef"
	capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ" + "234567"
)

func (l lot) of(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[l.IntN(len(alphabet))]
	}
	return string(b)
}

// fillShape replaces each placeholder in a shape by random characters. {w36} becomes 36 letters and digits. The other
// alphabets are h hexadecimal, n digits, l small letters, u capitals, d letters, digits, - and _, and b base64.
func (l lot) fillShape(shape string) string {
	return drawnPart.ReplaceAllStringFunc(shape, func(part string) string {
		alphabet := map[byte]string{'w': alnum, 'h': hexadec, 'n': digits, 'l': lower, 'u': capitals, 'd': alnum + "-_",
			'b': alnum + "+/"}[part[1]]
		n, _ := strconv.Atoi(part[2 : len(part)-1])
		edge := alphabet[:min(62, len(alphabet))] // no dash at the ends
		return l.of(edge, 1) + l.of(alphabet, n-2) + l.of(edge, 1)
	})
}

var drawnPart = regexp.MustCompile(`\{[whnlubd][0-9]+\}`)

// shapes are keys as their makers document them.
var shapes = strings.Fields(`
sk-ant-api03-{d93}AA sk-ant-admin01-{d93}AA sk-ant-oat01-{d93}AA sk-proj-{d58}T3BlbkFJ{d58} sk-{w20}T3BlbkFJ{w20} sk-svcacct-{d74}
sk-or-v1-{h64} sk-{h32} sk-lf-{h8}-{h4}-{h4}-{h4}-{h12} gsk_{w52} xai-{w80} hf_{w34} api_org_{w34} r8_{w37} pplx-{w48} nvapi-{d64}
tvly-{w32} fc-{h32} tgp_v1_{d43} pcsk_{w6}_{w63} lsv2_pt_{h32}_{h10} lsv2_sk_{h32}_{h10} AIza{d35} ABSK{b120} e2b_{h40} apify_api_{w36}
ghp_{w36} gho_{w36} ghu_{w36} ghs_{w36} ghr_{w36} github_pat_{w22}_{w59} glpat-{d20} glpat-{d27}.01.{h9} gldt-{d20} glrt-{d20} glrt-t1_{d27}
glcbt-{w2}_{d20} glptt-{h40} glft-{d20} glimt-{d25} glagent-{d50} gloas-{h64} glsoat-{d20} GR1348941{d20} npm_{w36} pypi-AgEIcHlwaS5vcmc{d100}
rubygems_{h48} cio{w32} oy2{w43} CLOJARS_{h60} dckr_pat_{d27} dckr_oat_{d32} AKCp{w69} cmVmdGtuOj{w54} ATATT3xFfGF0{d170}={h8} ATCTT3xFfGN0{d170}={h8}
ATBB{w32} CCIPAT_{w22}_{h40} bkua_{h40} squ_{h40} sqp_{h40} sqa_{h40} sgp_{h16}_{h40} sgp_{h40} sntrys_eyJ{b120}_{b43} sntryu_{h64}
AKIA{u16} ASIA{u16} ABIA{u16} ACCA{u16} GOCSPX-{d28} ya29.a0{d160} 1//0{d60} LTAI{w20} AKID{w32} AQVN{d36} hvs.{d95} hvb.{d150} hvr.{d95} s.{w24}
dop_v1_{h64} doo_v1_{h64} dor_v1_{h64} dapi{h32} dapi{h32}-2 dp.pt.{w43} dp.st.dev.{w40} dp.ct.{w43} dp.sa.{w43} dp.scim.{w43} dp.audit.{w43}
HRKU-AA{d58} v1.0-{h24}-{h146} pul-{h40} ico-{w32} fo1_{d43} fm2_{b200} nfp_{w36} sbp_{h40} sb_secret_{d31} AVNS_{d19} pscale_tkn_{d43} pscale_pw_{d43}
pscale_oauth_{d43} tskey-auth-{w17}-{w32} tskey-api-{w17}-{w32} sha256~{d43} AGE-SECRET-KEY-1{u58} ops_eyJ{b300} A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}
xoxb-{n12}-{n12}-{w24} xoxp-{n12}-{n12}-{n12}-{h32} xoxa-2-{n12}-{n12}-{h32} xoxr-{n12}-{h32} xoxs-{n12}-{n12}-{h32} xoxe-1-{w146} xoxe.xoxp-1-{w163} xapp-1-A{u10}-{n13}-{h64}
SG.{d22}.{d43} xkeysib-{h64}-{w16} key-{h32} SK{h32} re_{w8}_{w24} pat-na1-{h8}-{h4}-{h4}-{h4}-{h12} MT{w22}.{d6}.{d38} {n9}:AA{d33} {h32}-us14 syt_{w11}_{w20}_{w6} tk_{w29}
sk_live_{w24} sk_test_{w24} rk_live_{w24} rk_test_{w99} whsec_{w32} whsec_{b32} sq0atp-{d22} sq0csp-{d43} EAAA{w60} rzp_live_{w14} access_token$production${w16}${h32}
FLWSECK_TEST-{h32}-X FLWSECK-{h32}-X shpat_{h32} shpca_{h32} shppa_{h32} shpss_{h32} shippo_live_{h40} EZAK{w54} EZTK{w54} duffel_live_{d43} live_{w30}
glsa_{w32}_{h8} glc_{b100} eyJrIjoi{w90} NRAK-{u27} NRJS-{h19} NRII-{d32} dt0c01.{u24}.{u64} hcaik_01{l56} sdk-{h8}-{h4}-{h4}-{h4}-{h12} lin_api_{w40} lin_oauth_{h64}
ntn_{n11}{w35} secret_{w43} pat{w14}.{h64} figd_{d40} PMAK-{h24}-{h34} sl.{d135} tfp_{d44}_{w14} rdme_{h70} CFPAT-{d43} pat.{d22}.{h24}.{w20} s-s4t2ud-{h64}
dnkey-{u26}-{u52} fio-u-{d64} sk.eyJ{w60}.{d22} oauth:{w30} EAACEdEose0cBA{w120} {w14}.atlasv1.{d67} {w3}8Q~{d34} {w6}_{w29}_mmk xprv9s21ZrQH143K{w96}
eyJhbGciOiJIUzI1NiJ9.eyJ{d60}.{d43} eyJhbGciOiJSU0EtT0FFUCJ9.{d80}.{d16}.{d80}.{d22} LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{b200} LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUgS0VZLS0tLS0K{b200}
`)

// places are texts around an API key of a known kind. % stands for the key.
var places = []string{
	"%", "using %.", "export KEY=%", "KEY: %", `{"text":"got % from it"}`, `"%"`, "'%',", "<%>", "https://h/x/%/y",
	"\x1b[32m%\x1b[0m", "a\tb\t%\n", `{"a":"line\n%\nline"}`, "(%)", "[%]", "x=%;", "`%`",
}

// contexts are texts around a secret of no known kind. %w becomes letters and digits, %n digits, %l letters, %h
// hexadecimal digits and %B base64. %b becomes user:password in base64.
var contexts = strings.Split(strings.TrimSpace(`
export DB_PASSWORD=%w
DB_PASSWORD=%n
API_TOKEN=%l
secret=%l
password=%n
MY_APP_SECRET="%l"
PGPASSWORD=%l psql -h db
DATABASE_PASS='%w'
STRIPE_WEBHOOK_SECRET=%h
SENTRY_AUTH_TOKEN=%h
ENCRYPTION_KEY=%h
ALGOLIA_ADMIN_KEY=%h
AWS_SECRET_ACCESS_KEY=%B
{"password":"%l"}
{"password": %n}
{"token":"%n","n":1}
{"token":%n}
{"secret": "%l"}
{"client_secret":"%w","client_id":"a"}
{"auths":{"https://index.docker.io/v1/":{"auth":"%b"}}}
{"env":[{"name":"MY_TOKEN","value":"%l"}]}
{"text":"password: %l\nuser: bob"}
{"raw":"{\"apiKey\":\"%l\"}"}
password: %l
password: %n
secret: %l
  token: %l
  api_key: '%l'
- client-secret: %w
    client-key-data: %B
db_password: |\n  %w
db_password: >-\n  %l
auth: %b
password = "%l"
password = """%l"""
secret_key = '''%w'''
token = """\n%w\n"""
[db]\npassword = %l
spring.datasource.password=%l
<password>%l</password>
<password>\n  %w\n</password>
<apiKey>%n</apiKey>
<secret><![CDATA[%w]]></secret>
<add key="ClearTextPassword" value="%l" />
<property name="password" value="%l"/>
<key>Password</key><string>%w</string>
{"xml":"\u003cpassword\u003e%l\u003c/password\u003e"}
machine example.com login bob password %l
machine h\n  login bob\n  password %w\n
default login bob password %n
//registry.npmjs.org/:_authToken=%w
_auth=%b
https://bob:%l@example.com/x
postgres://app:%n@db:5432/x
redis://:%w@cache:6379
mongodb+srv://u:%l@c.mongodb.net/d
app:%w@tcp(db:3306)/shop
jdbc:oracle:thin:scott/%l@db:1521/x
jdbc:postgresql://db/x?user=app&password=%l
Server=db;Database=x;User Id=sa;Password=%l;Encrypt=yes
DefaultEndpointsProtocol=https;AccountName=a;AccountKey=%B==;EndpointSuffix=core.windows.net
Endpoint=sb://a.servicebus.windows.net/;SharedAccessKeyName=k;SharedAccessKey=%B=
https://a.blob.core.windows.net/c?sv=2024&sig=%B
https://maps.example.com/api?key=%w&q=x
https://h/x?a=1&auth=%w
https://h/cb?session_id=%l
https://h/x?token=%n
https://h/x?access_token=%l&y=1
https://b.s3.amazonaws.com/o?X-Amz-Expires=60&X-Amz-Signature=%h
https://storage.googleapis.com/o?X-Goog-Signature=%h
{"u":"https://h/x?a=1\u0026sig=%w\u0026b=2"}
Authorization: Bearer %l
Authorization: Basic %b
Authorization: Token %l
Authorization: ApiKey %w
Authorization: SSWS %w
Authorization: Bot %w
Authorization: SharedKey account:%B=
Authorization: Digest username="bob", realm="r", response="%h"
Authorization: AWS4-HMAC-SHA256 Credential=a/20261122/eu/s3/aws4_request, SignedHeaders=host, Signature=%h
Authorization: Custom-Scheme %w
Proxy-Authorization: Basic %b
{"Authorization":"Custom %w"}
X-Api-Key: %l
PRIVATE-TOKEN: %w
X-Vault-Token: %w
Ocp-Apim-Subscription-Key: %h
DD-API-KEY: %h
Cookie: session=%w; theme=dark
Set-Cookie: sid=%w; Path=/; HttpOnly
curl -u bob:%l https://h
curl --user 'bob:%w' https://h
curl -ubob:%n https://h
curl -sS -X POST -u "bob:%l" https://h/x
curl -H 'Authorization: Custom %w' https://h
curl -H "X-Api-Key: %l" https://h
curl --oauth2-bearer %w https://h
{"cmd":"curl -u bob:%l https://h"}
{"command":["curl","-u","bob:%w","https://h"]}
sshpass -p %l ssh bob@h
sshpass -p'%w' ssh bob@h
["sshpass","-p","%n","ssh","h"]
mysql -u root -p%l shop
mysqldump -uroot -p'%w' shop
mysql --password=%l shop
redis-cli -h h -a %w ping
docker login -u bob -p %l registry.example.com
docker login --username bob --password %w
ldapsearch -x -D cn=admin -w %l -b dc=x
smbclient //h/share -U bob%%w
wget --http-password=%l https://h
openssl rsa -in k.pem -passin pass:%l
keytool -list -storepass %l
vault login %w
aws configure set aws_secret_access_key %B
echo %l | docker login --username bob --password-stdin
rabbitmqctl add_user bob %l
tool --api-key %l --x
tool --client-secret=%n
{"args":["--auth-token","%l"]}
https://hooks.slack.com/services/T01234567/B01234567/%w
https://discord.com/api/webhooks/123456789012345678/%w
https://discordapp.com/api/webhooks/123456789012345678/%w
https://a.webhook.office.com/webhookb2/%w-%w
https://hooks.zapier.com/hooks/catch/123456/%w
password: \x1b[31m%l\x1b[0m
\x1b[1mpassword\x1b[0m=%w
{"t":"token: \u001b[33m%w\u001b[0m"}
password=\x1b[1m%n\x1b[22m done
password:\n  %w
apiKey := "%l"
const token = '%w';
if password == "%l" {
:password => "%l"
os.environ["API_KEY"] = "%l"
password: "%l",
my $password = '%l';
define('DB_PASSWORD', '%l');
spring.mail.password: %n
conn = connect(user="u", password="%l")
userPassword=%l
wifi_psk=%w
`), "\n")

type planted struct{ text, secret string }

// corpus returns 400 texts with a secret. The keys of known kinds are in alternating places, and the contexts follow.
func corpus() []planted {
	l := lot{rand.New(rand.NewPCG(12, 9))}
	var list []planted
	for i, shape := range shapes {
		key := l.fillShape(shape)
		list = append(list, planted{strings.ReplaceAll(places[i%len(places)], "%", key), key[max(0, len(key)-12):]})
	}
	unescape := strings.NewReplacer(`\x1b`, "\x1b", `\n`, "\n")
	for i := 0; len(list) < 400; i++ {
		c := contexts[i%len(contexts)]
		if !strings.HasPrefix(c, "{") {
			c = unescape.Replace(c)
		}
		at := strings.LastIndexByte(c, '%')
		var v string
		switch c[at+1] {
		case 'w':
			v = l.fillShape("{w24}")
		case 'n':
			v = l.fillShape("{n10}")
		case 'l':
			v = l.fillShape("{l12}")
		case 'h':
			v = l.fillShape("{h32}")
		case 'B':
			v = l.fillShape("{b40}")
		case 'b':
			v = strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("bob:"+l.fillShape("{w14}"))), "=")
		}
		list = append(list, planted{strings.ReplaceAll(c, c[at:at+2], v), v})
	}
	return list
}

// TestCorpus checks that at least 97 of 100 secrets are masked, and that every text stays valid.
func TestCorpus(t *testing.T) {
	missed := 0
	list := corpus()
	for _, p := range list {
		if !strings.Contains(p.text, p.secret) {
			t.Fatalf("%q is not in %q", p.secret, p.text)
		}
		got := Text(p.text)
		if strings.Contains(got, p.secret) {
			missed++
			t.Logf("missed: %q: %q", p.text, got)
		}
		checkRedact(t, p.text)
		inJSON, _ := json.Marshal(map[string]string{"text": p.text})
		checkRedact(t, string(inJSON))
		if strings.Contains(Text(string(inJSON)), p.secret) && !strings.Contains(got, p.secret) {
			t.Logf("missed in JSON: %s: %s", inJSON, Text(string(inJSON)))
			missed++
		}
	}
	t.Logf("%d of %d", len(list)-missed, len(list))
	if missed*100 > 3*len(list) {
		t.Errorf("%d of %d secrets are not masked", missed, len(list))
	}
}
