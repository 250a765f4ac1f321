package redact

import (
	"slices"
	"strings"
)

// The last word of a name decides whether its value is a secret. The values of password and DB_PASSWORD are secrets.
// The values of password_file, token_count and input_tokens are not.
var (
	// secretEndings are the endings of the last word of a secret's name: accesstoken, PGPASSWORD, x-apikey.
	secretEndings = []string{
		"password", "passwd", "passphrase", "passcode", "secret", "token", "apikey", "secretkey",
		"accesskey", "privatekey", "accountkey", "authkey", "signingkey", "encryptionkey", "masterkey",
		"authorization", "cookie", "cookies", "credential", "credentials", "passwort", "kennwort", "bindpw", "rootpw",
		"masterauth",
	}
	// secretPairs are the last two words of a secret's name.
	secretPairs = []string{
		"api key", "api keys", "access key", "secret key", "private key", "signing key",
		"encryption key", "auth key", "account key", "master key", "service key",
		"key base", "amz signature", "goog signature", "hub signature", "slack signature", "stripe signature",
		"connection string", "key data", "auth token",
		"subscription key", "consumer key", "license key", "client key", "webhook key", "deploy key",
		"shared key", "hmac key", "jwt key", "pre shared", "seed phrase", "recovery phrase",
		"recovery code", "backup code",
	}
	// passOwners are the words before "pass" in names of passwords, such as db_pass. The name first_pass does not name
	// a password.
	passOwners = []string{
		"db", "database", "user", "smtp", "mail", "email", "redis", "mysql", "postgres",
		"pg", "ftp", "ssh", "admin", "root", "login", "proxy", "http", "registry", "sql", "mongo", "imap",
		"ldap", "keystore", "store", "vault", "auth", "account", "rabbitmq", "default", "wifi", "vpn", "become", "connection",
		"require", "client", "server", "service", "my", "bind", "key", "src", "dest", "web",
	}
	// passWords are words that end with "pass" and do not name a password.
	passWords = []string{"bypass", "compass", "trespass", "surpass", "encompass", "overpass", "underpass", "multipass",
		"subpass"}
	// tokenCounts are the words before "token" in names such as max_token. Such a name belongs to a number of tokens of
	// text and not to a secret.
	tokenCounts = []string{
		"max", "min", "num", "n", "per", "total", "input", "output", "prompt", "cached",
		"completion", "first", "last", "stop", "eos", "bos", "pad", "unk", "start", "end",
		"unexpected", "progress",
	}
	// maybeNames are the last words of some names. The value of such a name may be a secret, and the form of the value
	// decides.
	maybeNames = []string{"auth", "pat", "jwt", "bearer", "psk", "pw", "otp", "totp", "mnemonic", "creds", "sas", "pass",
		"pin"}
	// plainKeys are the words before "key" in names of harmless values, such as public_key.
	plainKeys = []string{
		"public", "pub", "primary", "foreign", "sort", "partition", "cache", "row", "object", "unique", "index",
		"group", "range", "hash", "idempotency", "dedup", "map", "json", "i18n", "translation", "message",
		"shortcut", "arrow", "host", "known", "config", "setting", "registry", "query", "event", "topic", "ssh", "gpg",
	}
	// queryNames are names of secrets in the query of a URL. Elsewhere they are ordinary words.
	queryNames = []string{
		"sig", "signature", "auth", "session_id", "sessionid", "sid", "hmac", "pass", "pw", "jwt", "otp",
		"access_key", "phpsessid", "jsessionid",
	}
	// maybeQueryNames are names of possible secrets in the query of a URL. The value decides.
	maybeQueryNames = []string{"key", "code", "ticket", "sign", "session", "hash", "appid", "app_id", "app_key", "k"}
)

// naming says whether a name is the name of a secret.
type naming int

const (
	plainName  naming = iota
	maybeName         // the value is a secret if it looks like one
	secretName        // the value is a secret
)

// nameOf returns whether name is the name of a secret.
func nameOf(name string) naming {
	if !plausible(name) {
		return plainName
	}
	words := splitWords(name)
	for len(words) > 1 && strings.Trim(words[len(words)-1], "0123456789") == "" { // DB_PASSWORD_2
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return plainName
	}
	last, before := strings.TrimRight(words[len(words)-1], "0123456789"), ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	is := func(secret bool) naming {
		if secret {
			return secretName
		}
		return plainName
	}
	switch {
	case last == "pwd":
		return is(name != "PWD" && name != "OLDPWD") // PWD and OLDPWD are folders of the shell.
	case last == "pass" && before != "":
		if slices.Contains(passOwners, before) {
			return secretName
		}
		return maybeName
	case last == "auth" && name == "_auth": // .npmrc
		return secretName
	case strings.HasSuffix(last, "token"):
		return is(!slices.Contains(tokenCounts, before))
	case slices.Contains(secretPairs, before+" "+last):
		return secretName
	case slices.ContainsFunc(secretEndings, func(e string) bool { return strings.HasSuffix(last, e) }):
		return secretName
	case last == "key" && before != "" && !slices.Contains(plainKeys, before),
		slices.Contains(maybeNames, last):
		return maybeName
	case strings.HasSuffix(last, "pass") && !slices.Contains(passWords, last):
		return is(slices.Contains(passOwners, strings.TrimSuffix(last, "pass")))
	}
	return plainName
}

// queryNameOf returns the naming of a parameter in the query of a URL. The name begins at s[start]. For other names
// the result is plainName.
func queryNameOf(s string, start int, name string) naming {
	amp := strings.HasPrefix(name, "u0026") && backslashes(s, start) > 0
	if amp {
		name = name[len("u0026"):]
	}
	if !amp && (start == 0 || strings.IndexByte("?&", s[start-1]) < 0) && !strings.HasSuffix(s[:start], "&amp;") {
		return plainName
	}
	is := func(q string) bool { return strings.EqualFold(q, name) }
	switch {
	case slices.ContainsFunc(queryNames, is):
		return secretName
	case slices.ContainsFunc(maybeQueryNames, is):
		return maybeName
	}
	return nameOf(name)
}

// plausible is a fast check of a name's length and last letters. Most harmless names fail it.
func plausible(name string) bool {
	if len(name) < 2 || len(name) > 128 {
		return false
	}
	c2, c1 := name[len(name)-2]|0x20, name[len(name)-1]|0x20
	if isDigit(name[len(name)-1]) {
		return true
	}
	switch string([]byte{c2, c1}) {
	case "rd", "wd", "se", "et", "en", "ey", "ys", "on", "ie", "es", "al", "ls", "rt", "re", "ng", "ss", "th",
		"de", "at", "wt", "er", "sk", "pw", "tp", "ic", "ds", "as", "in", "ta", "ed", "me":
		return true
	}
	return false
}

// splitWords cuts api_key, apiKey, API-KEY and APIKey into lower-case words.
func splitWords(name string) []string {
	var words []string
	start := 0
	flush := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
		start = end
	}
	for i := range len(name) {
		c := name[i]
		switch {
		case !isWord(c):
			flush(i)
			start = i + 1
		case i > start && isUpper(c) && (!isUpper(name[i-1]) || i+1 < len(name) && isLower(name[i+1])):
			flush(i)
		}
	}
	flush(len(name))
	return words
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isWord(c byte) bool  { return isUpper(c) || isLower(c) || isDigit(c) }
