package proxy

import (
	"errors"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Host is one entry in the list of the hosts to which the agent may connect.
type Host struct {
	name string // in lower case, without the dot at the end
	port uint16 // 0 means 80 and 443
	any  bool   // for *.example.org: the entry has all names below example.org, but not example.org itself
}

// ParseHost reads an entry such as example.org, *.example.org or example.org:8080. Without a port, the entry has the
// ports 80 and 443. An IP address needs a port.
func ParseHost(entry string) (Host, error) {
	var h Host
	name := entry
	if host, port, err := net.SplitHostPort(entry); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return Host{}, errors.New("the port must be a number from 1 to 65535")
		}
		name, h.port = host, uint16(n)
	}
	name, h.any = strings.CutPrefix(name, "*.")
	h.name = normalize(name)
	_, err := netip.ParseAddr(h.name)
	switch {
	case h.name == "":
		return Host{}, errors.New(`must be a host such as "api.example.org", "*.example.org" or "localhost:8080"`)
	case err == nil && (h.port == 0 || h.any):
		return Host{}, errors.New("an address needs a port")
	case h.port == 0 && !h.any && h.name == "localhost":
		return Host{}, errors.New("a service of this machine needs a port")
	}
	return h, nil
}

// String returns the entry in the form that ParseHost reads.
func (h Host) String() string {
	name := h.name
	if h.any {
		name = "*." + name
	}
	if h.port == 0 {
		return name
	}
	return net.JoinHostPort(name, strconv.Itoa(int(h.port)))
}

// names reports whether the entry has this host name, with any port.
func (h Host) names(name string) bool {
	if h.any {
		return strings.HasSuffix(name, "."+h.name)
	}
	return name == h.name
}

// admits reports whether the entry has this host name and this port. The name must be a result of normalize.
func (h Host) admits(name string, port uint16) bool {
	return h.names(name) && (port == h.port || h.port == 0 && (port == 80 || port == 443))
}

// Admits reports whether the entry has this host name and this port. The port 0 means any port.
func (h Host) Admits(name string, port int) bool {
	name = normalize(name)
	return port == 0 && h.names(name) || port > 0 && port < 1<<16 && h.admits(name, uint16(port))
}

// private reports whether the host of the entry may have a private IP address. This needs an entry with one host and
// one port, so that the person has chosen the service.
func (h Host) private() bool { return h.port != 0 && !h.any }

// loopback returns the loopback address with the port, if the entry is a service of this machine, and "" otherwise.
func (h Host) loopback() string {
	name := h.name
	if name == "localhost" {
		name = "127.0.0.1"
	}
	if a, err := netip.ParseAddr(name); err != nil || !a.IsLoopback() || !h.private() {
		return ""
	}
	return net.JoinHostPort(name, strconv.Itoa(int(h.port)))
}

// normalize returns a host name in lower case without the dot at its end, or an IP address in its usual form. It
// returns "" for a text that is neither.
func normalize(name string) string {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.String()
	}
	name = strings.TrimSuffix(strings.ToLower(name), ".")
	if len(name) > 253 || strings.HasPrefix(name, ".") || strings.Contains(name, "..") {
		return ""
	}
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_' {
			return ""
		}
	}
	return name
}
