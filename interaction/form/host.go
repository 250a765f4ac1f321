package form

import "golang.org/x/net/idna"

// Host is the name of a host as a person has to see it. A name with letters that are not ASCII stands there in both of
// its forms: such letters may look like those of another host.
func Host(name string) string {
	ascii, err := idna.Punycode.ToASCII(name)
	if err != nil {
		ascii = name // it names no host
	}
	letters, err := idna.Punycode.ToUnicode(name)
	if err != nil {
		letters = name // likewise
	}
	if ascii == letters {
		return name
	}
	return ascii + " (" + letters + ")"
}
