package acp

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-faster/jx"

	"github.com/perlica/perlica/provider"
	"github.com/perlica/perlica/provider/exception"
)

// outside returns the reason why a request of a client on another machine must not pass, or "". Such a client may only
// make permissions stricter: it cannot add servers or paths. Methods without Row.Outside would loosen a mode or an
// option, log in on this machine, or reveal sessions that are not on Perlica's record.
func (r *relay) outside(m provider.Message, exempt exception.Row) (code int, why string) {
	if r.opt.Visitor == "" {
		return 0, ""
	}
	if !exempt.Outside {
		return codeMethod, m.Method + " is not for a client from outside"
	}
	if m.Params == nil {
		return 0, ""
	}
	return codeParams, once(m.Params, []string{"sessionId", "cwd", "mcpServers", "additionalDirectories", "prompt"},
		func(name string, value []byte) string {
			switch name {
			case "mcpServers", "additionalDirectories":
				if !isEmpty(value) {
					return name + " of a client from outside are not taken"
				}
			case "prompt":
				return outsideBlocks(value)
			}
			return ""
		})
}

// isEmpty reports whether a value is null or an array without elements.
func isEmpty(value []byte) bool {
	return string(value) == "null" || value[0] == '[' && len(bytes.TrimSpace(value[1:len(value)-1])) == 0
}

// outsideBlocks returns the fault of a prompt of a client on another machine, or "". Attachments
// must come as bytes, because a path would name a file of this machine.
func outsideBlocks(prompt []byte) (why string) {
	err := jx.DecodeBytes(prompt).Arr(func(d *jx.Decoder) error {
		block, err := d.Raw()
		if err != nil || why != "" {
			return err
		}
		kind, uri := "", ""
		why = once(block, []string{"type", "uri"}, func(name string, value []byte) string {
			s, err := jx.DecodeBytes(value).Str()
			switch {
			case err != nil && string(value) != "null":
				return "a block's " + name + " is no text"
			case name == "type":
				kind = s
			default:
				uri = s
			}
			return ""
		})
		switch {
		case why != "":
		case slices.Contains([]string{"text", "image", "audio", "resource"}, kind):
		case kind != "resource_link":
			why = "a block of this kind is not taken from outside"
		case !strings.HasPrefix(uri, "https://") && !strings.HasPrefix(uri, "http://"):
			why = "a path is not taken from outside: send the bytes, as an embedded resource"
		}
		return nil
	})
	if err != nil {
		return "the prompt cannot be read: " + err.Error()
	}
	return why
}

// once calls the function f for each member that has one of the names, until f returns a fault. Programs differ in the
// handling of repeated names and of case. Each member may therefore occur once and only in ACP's spelling.
func once(object []byte, names []string, f func(name string, value []byte) string) (why string) {
	seen := map[string]bool{}
	err := jx.DecodeBytes(object).ObjBytes(func(d *jx.Decoder, key []byte) error {
		name := string(key)
		value, err := d.Raw()
		if err != nil || why != "" {
			return err
		}
		i := slices.IndexFunc(names, func(known string) bool { return strings.EqualFold(known, name) })
		switch {
		case i < 0:
		case name != names[i] || seen[name]:
			why = names[i] + " is there twice, or in another spelling"
		default:
			seen[name] = true
			why = f(name, value)
		}
		return nil
	})
	if err != nil {
		return "the parameters cannot be read: " + err.Error()
	}
	return why
}
