package redact

import "strings"

// lineEnd matches the end of a line, also inside a JSON string.
const lineEnd = `(?:$|["'\r\n|]|\\+[rn])`

// protocols are patterns for the messages of programs and servers.
var protocols = []pattern{
	{ // passwords in commands of FTP, mail, IRC and Redis
		[]string{"PASS ", "LOGIN "},
		lazy(`(?m:^|[>:"] ?|\\u003e ?|\\n|(?:^|["\n])\w+ )(?:PASS|LOGIN [^\s"']+) +([^\s"'\\/.:()]{6,})` + lineEnd),
		func(v string) bool { return notInProse(v) && !strings.HasPrefix(v, "Test") },
	},
	{
		[]string{"AUTH ", "IDENTIFY "},
		lazy(`\b(?:AUTH(?: PLAIN| LOGIN| default)?|IDENTIFY(?: \w+)?) +([^\s"'\\/.:()]{6,})` + lineEnd),
		func(v string) bool { return notInProse(v) && (notWord(v) || isBasic(v)) },
	},
	{
		[]string{"stats auth "},
		lazy(`stats auth [^\s:]+:([^\s"'\\]+)`), nil,
	},
	{ // secrets in commands of GitHub's runners
		[]string{"::add-mask::", "::set-output name="},
		lazy(`(?:::add-mask::|::set-output name=[\w-]*(?i:password|secret|token|key)::)([^\s"'\\]+)`), notInProse,
	},
	{ // secrets in an encoded URL
		[]string{"%3D", "%3d"},
		lazy(`(?i:password|passwd|secret|token|api_?key)%3[Dd]([^%&\s"'\\]{4,})`), nil,
	},
	{
		[]string{"form-data; name="},
		lazy(`name=\\*"[\w-]*(?i:password|passwd|secret|token|api_?key)\\*"(?:\s|\\+[rn])+([^\s\\"]{4,})`), nil,
	},
	{ // the signature of a request without its header
		[]string{"SignedHeaders="},
		lazy(`SignedHeaders=[^,\s]+, *Signature=([0-9a-f]{32,})`), nil,
	},
	{
		[]string{"mac=", "response="},
		lazy(`\b(?:mac|response)=\\*"([A-Za-z0-9+/]{27,}=*)\\*"`), nil,
	},
	{ // a change shown by Terraform
		[]string{`redacted]" -> "`, `redacted]\" -> \"`, `redacted]" -\u003e "`, `redacted]\" -\u003e \"`},
		lazy(`redacted\]\\*" -(?:>|\\u003e) \\*"([^"\\]+)`), notInProse,
	},
	{
		[]string{"SecureString "},
		lazy(`SecureString (?:-String )?\\*["']([^"'\\]{4,})`), notInProse,
	},
	{ // keys of SQLite files, passwords of MongoDB
		[]string{"PRAGMA key", "PRAGMA rekey", ".auth("},
		lazy(`(?:PRAGMA (?:re)?key *= *\\*["']|\.auth\(\\*["'][^"'\\]*\\*["'] *, *\\*["'])([^"'\\]+)`), notInProse,
	},
	{ // secrets in XML: <token value="…"/>
		[]string{"assword value=", "oken value=", "ecret value=", "ey value="},
		lazy(`(?:<|\\u003c|&lt;)[\w:.-]*(?i:password|passwd|secret|token|api-?key) value=\\*["']([^"'\\]+)`), notInProse,
	},
	{ // secrets in the output of PHP's var_dump
		[]string{"> string(", "e string("},
		lazy(`(?i:password|passwd|secret|token|api_?key)\\*"\](?:=>|=\\u003e)\s*string\([0-9]+\) \\*"([^"\\]+)`), notInProse,
	},
	{ // secrets in the output of PHP's print_r
		[]string{"] =>", `] =\u003e`},
		lazy(`\[\w*(?i:password|passwd|secret|token|api_?key)\] =(?:>|\\u003e) ([^\s"'\\|()]{6,}) *` + lineEnd),
		func(v string) bool { return notInProse(v) && !isReference(v) },
	},
	{ // secrets in tables: password | VALUE
		[]string{"assword |", "oken |", "ecret |", "_key |"},
		lazy(`(?i:password|passwd|secret|token|api[_ ]key) +\| +([^\s"'\\|()]{6,})(?: *` + lineEnd + `| \|)`),
		func(v string) bool { return notInProse(v) && notWord(v) && !isReference(v) },
	},
	{ // secrets in a sentence: your password is: VALUE
		[]string{"assword is", "assphrase is", "oken is", "ecret is", "ey is", "assword ->", "oken ->", "ecret ->",
			`assword -\u003e`, `oken -\u003e`, `ecret -\u003e`},
		lazy(`(?i:password|passphrase|token|secret|key)(?: is:?| -(?:>|\\u003e)) +(?:\\*["'])?([^\s"'\\,;]{6,}?)\.?` +
			lineEnd),
		func(v string) bool {
			return notInProse(v) && !isReference(v) && !strings.ContainsAny(v, "()/") &&
				(strings.ContainsAny(v, "0123456789") || len(v) >= 20 && !isPath(v))
		},
	},
}
