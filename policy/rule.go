package policy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/perlica/perlica/policy/shell"
)

// Effect is the answer that a rule or a decision gives.
type Effect string

// The three effects. A matching deny rule wins over a matching ask rule, and an ask rule wins over an allow rule.
const (
	Deny  Effect = "deny"
	Ask   Effect = "ask"
	Allow Effect = "allow"
)

// Rule is one [[policy.rule]] of the configuration. An empty field matches everything, and all other fields must match.
// A deny or ask rule matches if any path or any command of the request matches. An allow rule matches only if all paths
// and commands match. An allow rule with kinds but without a command covers commands only if "execute" is among its
// kinds.
type Rule struct {
	Effect   Effect   `toml:"effect" json:"effect"`
	Provider string   `toml:"provider" json:"provider,omitempty"` // provider id
	Kind     []string `toml:"kind" json:"kind,omitempty"`         // ACP tool kinds
	Path     string   `toml:"path" json:"path,omitempty"`         // "inside", "outside", or a glob
	Command  string   `toml:"command" json:"command,omitempty"`   // words; * is one word, ... the rest
	Reason   string   `toml:"reason" json:"reason,omitempty"`     // shown with the rule's decision
	// Tier is "ordinary" or empty. With "ordinary", an allow rule does not allow a request that is always asked about.
	Tier shell.Tier `toml:"tier" json:"tier,omitempty"`

	// Origin names the file and the line of the rule.
	Origin string `toml:"-" json:"origin,omitempty"`
}

// kinds are all tool kinds of ACP.
var kinds = []string{"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}

// Check returns the error in the rule, or nil.
func (r Rule) Check() error {
	_, err := compile(r)
	return err
}

func compile(r Rule) (compiled, error) {
	c := compiled{rule: r}
	switch r.Effect {
	case Allow, Ask, Deny:
	default:
		return c, fmt.Errorf("effect is %q, not allow, ask or deny", r.Effect)
	}
	if r.Tier != "" && (r.Tier != shell.Ordinary || r.Effect != Allow) {
		return c, fmt.Errorf("tier is %q with the effect %q; only \"ordinary\" with the effect \"allow\" has a meaning",
			r.Tier, r.Effect)
	}
	for _, k := range r.Kind {
		if !slices.Contains(kinds, k) {
			return c, fmt.Errorf("unknown kind %q; the kinds are %s", k, strings.Join(kinds, ", "))
		}
	}
	if !doublestar.ValidatePattern(r.Path) {
		return c, fmt.Errorf("path %q is no glob", r.Path)
	}
	if r.Command == "" {
		return c, nil
	}
	p, err := shell.ParsePattern(r.Command)
	c.pattern = p
	return c, err
}

// fitsRequest reports whether the provider, the kind and the path of the rule fit the request.
func (c compiled) fitsRequest(r Request) bool {
	if c.rule.Provider != "" && c.rule.Provider != r.Provider {
		return false
	}
	if len(c.rule.Kind) > 0 && !slices.Contains(c.rule.Kind, r.Kind) {
		return false
	}
	if c.rule.Path == "" {
		return true
	}
	match := func(p string) bool { return c.pathFits(p, r.Place) }
	if c.rule.Effect != Allow {
		return slices.ContainsFunc(r.Paths, match) || r.noTarget() // the unnamed file may be any file
	}
	return len(r.Paths) > 0 && !slices.ContainsFunc(r.Paths, func(p string) bool { return !match(p) })
}

// exactly reports whether the rule names one command or one file, without wildcards. Such a rule may allow an
// unreadable request.
func (c compiled) exactly() bool {
	if c.pattern != nil {
		return c.pattern.Literal()
	}
	return c.rule.Path != "" && c.rule.Path != "inside" && c.rule.Path != "outside" && !shell.HasMeta(c.rule.Path)
}

// pathFits reports whether the path p of a request fits the path of the rule. An allow rule compares only the target of
// p after all links. A deny or ask rule also compares p itself.
func (c compiled) pathFits(p string, at shell.Place) bool {
	real, ok := realPath(p)
	allow := c.rule.Effect == Allow
	switch c.rule.Path {
	case "inside":
		return ok && insideDir(real, at) || !allow && at.Dir != "" && insidePath(at.Dir, filepath.Clean(p))
	case "outside":
		return ok && at.Dir != "" && !insideDir(real, at) || !ok && !allow
	}
	if ok && globFits(c.rule.Path, real, at, true) {
		return true
	}
	return !allow && globFits(c.rule.Path, filepath.Clean(p), at, false)
}

// insideDir reports whether a real path is in the working directory.
func insideDir(real string, at shell.Place) bool {
	dir, ok := realPath(at.Dir)
	return ok && insidePath(dir, real)
}

func insidePath(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

// globFits reports whether the path p matches the glob of a rule. If "resolved" is true, p is a result of realPath.
// globFits then also resolves the links in the part of the glob before its first wildcard.
func globFits(glob, p string, at shell.Place, resolved bool) bool {
	base, rest := doublestar.SplitPattern(filepath.ToSlash(glob))
	base = filepath.FromSlash(shell.Unescape(base))
	switch {
	case glob == "~" || base == "~":
		base = at.Home
	case strings.HasPrefix(base, "~"+string(filepath.Separator)):
		base = filepath.Join(at.Home, base[2:])
	case !filepath.IsAbs(base):
		base = filepath.Join(at.Dir, base)
	}
	if !filepath.IsAbs(base) {
		return false
	}
	if glob == "~" {
		rest = "."
	}
	if resolved {
		if !shell.HasMeta(rest) {
			// Without a wildcard, the whole glob is a path. Its last name may be a link, too, so realPath resolves
			// it.
			base, rest = filepath.Join(base, filepath.FromSlash(shell.Unescape(rest))), "."
		}
		var ok bool
		if base, ok = realPath(base); !ok {
			return false
		}
	}
	rel, err := filepath.Rel(base, p)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	if rest == "." {
		return rel == "."
	}
	fits, err := doublestar.Match(rest, filepath.ToSlash(rel))
	return fits && err == nil
}
