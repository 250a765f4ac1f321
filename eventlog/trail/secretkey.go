package trail

import (
	"slices"
	"strings"
)

// A name is judged by its last word, so that password and DB_PASSWORD are secrets
// and password_file, token_count and input_tokens are not.
var (
	// A word with one of these endings: accesstoken, PGPASSWORD, x-apikey.
	secretEndings = []string{
		"password", "passwd", "passphrase", "secret", "token", "apikey", "secretkey",
		"accesskey", "privatekey", "authorization", "cookie", "cookies",
		"credential", "credentials", "passwort",
	}
	// The last two words together.
	secretPairs = []string{
		"api key", "api keys", "access key", "secret key", "private key", "signing key",
		"encryption key", "auth key", "account key", "master key", "service key",
		"key base", "amz signature", "connection string",
	}
	// Whose "pass" is a password; in "first_pass" it is not.
	passOwners = []string{
		"db", "database", "user", "smtp", "mail", "email", "redis", "mysql", "postgres",
		"pg", "ftp", "ssh", "admin", "root", "login", "proxy", "http", "registry",
	}
	// What makes a token a unit of text and not a key.
	tokenCounts = []string{
		"max", "min", "num", "n", "per", "total", "input", "output", "prompt", "cached",
		"completion", "first", "last", "stop", "eos", "bos", "pad", "unk", "start", "end",
		"unexpected", "progress",
	}
)

// isSecretKey reports whether what is called name is a secret.
func isSecretKey(name string) bool {
	if !plausible(name) {
		return false
	}
	words := splitWords(name)
	if len(words) == 0 {
		return false
	}
	last, before := words[len(words)-1], ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch {
	case last == "pwd":
		return name != "PWD" && name != "OLDPWD" // the shell's working directory
	case last == "pass":
		return slices.Contains(passOwners, before)
	case last == "auth":
		return name == "_auth" // .npmrc
	case strings.HasSuffix(last, "token"):
		return !slices.Contains(tokenCounts, before)
	case slices.Contains(secretPairs, before+" "+last):
		return true
	}
	return slices.ContainsFunc(secretEndings, func(e string) bool { return strings.HasSuffix(last, e) })
}

// plausible is the cheap look that most names fail: the ending of a secret's name.
func plausible(name string) bool {
	if len(name) < 3 || len(name) > 128 {
		return false
	}
	c2, c1 := name[len(name)-2]|0x20, name[len(name)-1]|0x20
	switch string([]byte{c2, c1}) {
	case "rd", "wd", "se", "et", "en", "ey", "ys", "on", "ie", "es", "al", "ls", "rt", "re", "ng", "ss", "th":
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
