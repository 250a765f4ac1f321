package policy

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
)

// addPath adds a path. The path may be absolute or relative, be a file:// URL, or begin with ~ or $HOME. Some tools put
// several paths in one text, so addPath also adds each part of a text with commas or line ends.
func (r *reader) addPath(p string) {
	if p = strings.TrimSpace(p); p == "" {
		return
	}
	if parts := strings.FieldsFunc(p, func(c rune) bool { return c == '\n' || c == ',' }); len(parts) > 1 {
		for _, part := range parts {
			r.addPath(part)
		}
	}
	if p = r.absolute(p); !slices.Contains(r.paths, p) {
		r.paths = append(r.paths, p)
	}
}

// absolute returns the absolute path for a path, a file:// URL or a path from a home directory. If it cannot, it
// returns p.
func (r *reader) absolute(p string) string {
	if len(p) >= 5 && strings.EqualFold(p[:5], "file:") {
		if u, err := url.Parse(p); err == nil && (u.Host == "" || u.Host == "localhost") && u.Path+u.Opaque != "" {
			if p = u.Path; p == "" {
				p = u.Opaque
			}
		}
	}
	switch {
	case p == "~" || strings.HasPrefix(p, "~/") || strings.HasPrefix(p, `~\`):
		if r.place.Home == "" {
			return p // this path is not absolute, so its target is unknown
		}
		p = filepath.Join(r.place.Home, p[1:])
	case strings.HasPrefix(p, "~"):
		// For another user's home, such as ~bob, assume the usual folder below /home.
		return filepath.Join("/home", p[1:])
	case strings.HasPrefix(p, "$HOME/") || strings.HasPrefix(p, "${HOME}/"):
		_, rest, _ := strings.Cut(p, "/")
		p = filepath.Join(r.place.Home, rest)
	case !filepath.IsAbs(p) && r.place.Dir != "":
		// Keep "..": if the name before it is a link, ".." leads elsewhere, and filepath.Join would remove both
		// names.
		p = strings.TrimRight(r.place.Dir, "/") + string(filepath.Separator) + strings.TrimPrefix(p, "./")
		if !strings.Contains(p, "..") {
			p = filepath.Clean(p)
		}
	}
	if strings.HasSuffix(p, "/") && len(p) > 1 {
		p = strings.TrimRight(p, "/")
	}
	return p
}

// addGlob adds the directory to which a pattern of paths is confined, if this may lie outside the working directory.
// All other patterns stay below the directory in which the search starts.
func (r *reader) addGlob(pattern string) {
	pattern = strings.ReplaceAll(pattern, `\/`, "/")
	for _, one := range alternatives(pattern) {
		r.addOneGlob(one)
	}
}

// alternatives expands a pattern that begins with {a,b} or @(a|b): {a,b}/c becomes a/c and b/c. It does not expand
// alternatives at other places, because only the first one can make the path absolute.
func alternatives(pattern string) []string {
	separator, open, closing := byte(','), byte('{'), byte('}')
	start := 1
	if len(pattern) > 2 && strings.IndexByte("@+?*", pattern[0]) >= 0 && pattern[1] == '(' {
		separator, open, closing, start = '|', '(', ')', 2
	} else if pattern == "" || pattern[0] != open {
		return []string{pattern}
	}
	var list []string
	depth, from := 1, start
	for i := start; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == open:
			depth++
		case c == separator && depth == 1:
			list, from = append(list, pattern[from:i]), i+1
		case c == closing:
			if depth--; depth == 0 {
				list = append(list, pattern[from:i])
				var out []string
				for _, head := range list {
					out = append(out, alternatives(head)...)
				}
				for j := range out {
					out[j] += pattern[i+1:]
				}
				return out
			}
		}
	}
	return []string{pattern}
}

func (r *reader) addOneGlob(pattern string) {
	if !looksLikePath(pattern) && !strings.Contains(pattern, "../") {
		return
	}
	base, _ := doublestar.SplitPattern(filepath.ToSlash(pattern))
	// With "..", a pattern such as x/**/../../y may leave the directory x before the first wildcard.
	if i := strings.Index(pattern, ".."); i >= 0 && i >= len(base) {
		base = filepath.Join(base, strings.Repeat("../", strings.Count(pattern, "..")))
	}
	r.addPath(base)
}

// looksLikePath reports whether a text begins like a path that is absolute, starts in a home directory, or leads to the
// parent directory.
func looksLikePath(s string) bool {
	s = strings.TrimSpace(s)
	if strings.ContainsAny(s, "\n") || len(s) > 4096 {
		return false
	}
	lower := strings.ToLower(s)
	return strings.HasPrefix(s, "/") || strings.HasPrefix(s, "~") || strings.HasPrefix(s, "../") || s == ".." ||
		strings.HasPrefix(lower, "file:") || strings.HasPrefix(s, "$HOME") || strings.HasPrefix(s, "${HOME}") ||
		filepath.IsAbs(s)
}

var plainWord = lazily(`^[\pL\pN][\pL\pN_:+-]*$`)

// isWord reports whether a text is empty or one harmless word: neither a path nor the name of a program in programs.
func isWord(s string) bool {
	return s == "" || len(s) <= 64 && plainWord().MatchString(s) && !programs()[strings.ToLower(s)]
}

// programs are the names of programs that isWord refuses: they run other programs, or they write, remove, send, show or
// end something.
var programs = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.FieldsSeq(`sh bash zsh dash ksh fish csh tcsh pwsh powershell cmd busybox toybox
		python python2 python3 perl ruby node nodejs deno bun php lua tclsh awk gawk mawk sed ed ex vi vim nvim nano
		emacs
		rm rmdir unlink shred dd mkfs fdisk parted wipefs mv cp ln install rsync scp sftp ssh tee truncate touch mkdir
		chmod chown chgrp chattr setfacl setcap mount umount swapoff losetup cryptsetup lvremove
		sudo su doas pkexec runuser env nice nohup setsid timeout xargs find parallel watch script expect
		curl wget nc ncat netcat socat telnet ftp aria2c git hg svn gh glab npm npx pnpm yarn pip pip3 pipx uv uvx
		poetry
		cargo go make cmake ninja gradle mvn docker podman kubectl helm terraform ansible aws gcloud az
		systemctl service launchctl crontab at batch kill killall pkill reboot shutdown poweroff halt init
		iptables nft ufw ip ifconfig sysctl modprobe insmod rmmod useradd userdel usermod passwd chpasswd visudo
		apt dnf yum pacman brew snap dpkg rpm tar zip unzip cat tail less more ls eval exec source
		psql mysql sqlite3 mongo redis-cli dropdb perlica tmux screen rundll32 reg del rd format diskpart`) {
		out[name] = true
	}
	return out
})
