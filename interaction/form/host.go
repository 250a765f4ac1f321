package form

import "golang.org/x/net/idna"

// Host shows the name of a host to a person. A name with letters outside ASCII appears in both of its forms, because
// such letters may look like those of another host.
func Host(name string) string {
	ascii, err := idna.Punycode.ToASCII(name)
	if err != nil {
		ascii = name // not a valid host name
	}
	letters, err := idna.Punycode.ToUnicode(name)
	if err != nil {
		letters = name // not a valid host name
	}
	if ascii == letters {
		return name
	}
	return ascii + " (" + letters + ")"
}
