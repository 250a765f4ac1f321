package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// secrets are the files and folders of the home with credentials or private data. The modes Project and Offline hide
// them.
var secrets = []string{
	".ssh", ".gnupg", ".pki", ".password-store", ".netrc", ".authinfo", ".authinfo.gpg", ".git-credentials",
	".pgpass", ".my.cnf",
	".aws", ".azure", ".kube", ".oci", ".fly", ".boto", ".s3cfg", ".vault-token", ".terraform.d", ".docker/config.json",
	".config/gcloud", ".config/gh", ".config/hub", ".config/glab-cli", ".config/doctl", ".config/heroku",
	".config/rclone",
	".config/op", ".config/1Password", ".1password", ".config/Bitwarden", ".config/sops", ".config/age",
	".config/git/credentials",
	".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials",
	".m2/settings.xml",
	".gradle/gradle.properties", ".nuget/NuGet", ".config/pip", ".config/containers",
	".local/share/keyrings", ".local/share/kwalletd", ".Xauthority", ".ICEauthority",
	".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware",
	".config/microsoft-edge",
	".config/vivaldi", ".config/opera", ".config/Signal", ".config/Slack", ".config/discord", ".config/Element",
	".var/app", "snap",
	".bash_history", ".zsh_history", ".local/share/fish", ".python_history", ".node_repl_history", ".psql_history",
	".mysql_history",
	".databrickscfg", ".kaggle", ".composer", ".subversion/auth", ".msmtprc", ".mbsyncrc", ".mutt", ".purple",
	".snowflake", ".minikube", ".terraformrc", ".sentryclirc", ".docker/contexts", ".bundle/config", ".vault_pass",
	".librewolf", ".zen", ".zhistory", ".histfile", ".irb_history", ".codeium",
	".config/Code", ".config/Cursor", ".config/configstore", ".config/composer", ".config/hcloud", ".config/openstack",
	".config/stripe", ".config/ngrok", ".config/netlify", ".config/.wrangler", ".config/argocd", ".config/helm",
	".config/linode-cli", ".config/io.datasette.llm", ".config/huggingface", ".config/nix/nix.conf", ".config/filezilla",
	".config/keepassxc", ".config/weechat", ".config/mutt", ".config/JetBrains", ".config/zed",
	".config/google-chrome-beta", ".config/fish/fish_variables", ".config/teams",
	".local/share/com.vercel.cli", ".local/share/TelegramDesktop", ".local/share/evolution",
	".local/share/gem/credentials",
	".sqlite_history", ".lesshst", ".viminfo", ".bitcoin", ".ethereum", ".electrum", ".config/solana",
}

// usual are the default folders of Perlica in a home. They are hidden even if environment variables name other folders.
var usual = []string{".config/perlica", ".local/state/perlica"}

// secretFiles are secret files of the system. They are hidden for the case that the user is root and can read them.
var secretFiles = []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab",
	"/etc/ssl/private"}

// cache has the cache folders of one build tool.
type cache struct {
	tool    string   // the program; New creates its caches if the program is on PATH
	folders []string // relative to the home
}

// caches are the cache folders of build tools. The agent may write there, so that the tools work inside the sandbox.
var caches = []cache{
	{"go", []string{".cache/go-build", "go/pkg"}},
	{"gopls", []string{".cache/gopls"}},
	{"golangci-lint", []string{".cache/golangci-lint"}},
	{"npm", []string{".npm"}},
	{"node", []string{".cache/node", ".cache/node-gyp", ".cache/typescript"}},
	{"yarn", []string{".cache/yarn", ".yarn/berry"}},
	{"pnpm", []string{".cache/pnpm", ".local/share/pnpm/store"}},
	{"bun", []string{".bun/install/cache"}},
	{"deno", []string{".cache/deno"}},
	{"pip", []string{".cache/pip"}},
	{"pip3", []string{".cache/pip"}},
	{"uv", []string{".cache/uv"}},
	{"poetry", []string{".cache/pypoetry"}},
	{"pre-commit", []string{".cache/pre-commit"}},
	{"cargo", []string{".cargo/registry", ".cargo/git"}},
	{"mvn", []string{".m2/repository"}},
	{"gradle", []string{".gradle/caches", ".gradle/daemon", ".gradle/wrapper", ".gradle/native"}},
	{"dotnet", []string{".nuget/packages"}},
	{"composer", []string{".cache/composer"}},
	{"bazel", []string{".cache/bazel"}},
	{"ccache", []string{".cache/ccache"}},
	{"sccache", []string{".cache/sccache"}},
	{"zig", []string{".cache/zig"}},
	{"clangd", []string{".cache/clangd"}},
}

// caches returns the existing cache folders of the home. It first creates the missing folders of installed tools,
// because the agent cannot create them.
func (s Spec) caches(t *table) (paths []string) {
	if s.Home == "" || s.Home == "/" {
		return nil
	}
	made := t.makeFolder(filepath.Join(s.Home, ".cache"), 0o700)
	for _, c := range caches {
		installed := sync.OnceValue(func() bool {
			_, err := exec.LookPath(c.tool)
			return err == nil
		})
		for _, path := range s.below(c.folders) {
			if _, err := os.Lstat(path); err != nil {
				if !made || !installed() {
					continue
				}
				t.makeFolder(path, 0o755) // if this fails, the tool works without this cache or fails
			}
			paths = append(paths, path)
		}
	}
	return paths
}

// sockets returns the paths of sockets with which an agent could reach programs outside, and of folders with such
// sockets. A terminal multiplexer or an editor may create its socket later. So sockets creates the missing folders of
// these programs, which can then be hidden. The parameter "temporary" has the names of the entries of /tmp.
func (s Spec) sockets(t *table, temporary []string) (paths []string) {
	uid, user := strconv.Itoa(os.Getuid()), s.variable("USER")
	tmux := s.variable("TMUX_TMPDIR")
	if tmux == "" {
		tmux = "/tmp"
	}
	made := []string{filepath.Join(tmux, "tmux-"+uid), "/tmp/emacs" + uid, "/tmp/zellij-" + uid}
	if user != "" {
		made = append(made, "/tmp/nvim."+user)
	}
	for _, dir := range made {
		if s.Mode == Protect || !strings.HasPrefix(dir, "/tmp/") {
			t.makeFolder(dir, 0o700) // if this fails, the path is not a folder
		}
	}
	paths = append(made, s.variable("SCREENDIR"), filepath.Join(s.Home, ".screen"),
		"/tmp/.X11-unix", "/tmp/.ICE-unix", "/tmp/screens", "/tmp/uscreens", "/mnt/wslg")
	for _, name := range temporary {
		for _, prefix := range []string{"ssh-", "dbus-", "vscode-", "kitty-"} {
			if strings.HasPrefix(name, prefix) {
				paths = append(paths, "/tmp/"+name)
			}
		}
	}
	for _, name := range []string{"SSH_AUTH_SOCK", "WAYLAND_DISPLAY", "DOCKER_HOST", "DBUS_SESSION_BUS_ADDRESS"} {
		address := s.variable(name)
		for _, scheme := range []string{"unix:path=", "unix://"} {
			address = strings.TrimPrefix(address, scheme)
		}
		address, _, _ = strings.Cut(address, ",")
		paths = append(paths, address)
	}
	return append(paths, listening()...)
}

// temporary returns the names of the entries of /tmp if the agent sees this folder. They can be many, so it does not
// sort them.
func (s Spec) temporary() []string {
	if s.Mode != Protect {
		return nil
	}
	dir, err := os.Open("/tmp")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }() // nothing was written
	names, _ := dir.Readdirnames(-1)   // after an error, these are the names before it
	return names
}

// listening returns the paths of all sockets on which a program of this machine listens.
func listening() (paths []string) {
	data, _ := os.ReadFile("/proc/net/unix") // if this fails, only the known places are hidden
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line) // number, references, protocol, flags, type, state, inode, path
		const accepts = 0x10000
		if len(f) < 8 || !strings.HasPrefix(f[7], "/") {
			continue
		}
		if flags, err := strconv.ParseUint(f[3], 16, 32); err != nil || flags&accepts == 0 {
			continue
		}
		path := strings.TrimSpace(line[strings.Index(line, " /")+1:])
		if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSocket != 0 {
			paths = append(paths, path)
		}
	}
	return paths
}

// isReachable reports whether the modes of the folders above a path let the user reach the path. If the user is
// root, this matters, because an agent in the sandbox does not have the rights of root. The map "open" caches the
// results for folders.
func isReachable(path string, open map[string]bool) bool {
	dir := filepath.Dir(path)
	if os.Getuid() != 0 || dir == "/" || path == "/" {
		return true
	}
	ok, known := open[dir]
	if !known {
		info, err := os.Stat(dir)
		ok = err == nil && isOpen(info) && isReachable(dir, open)
		open[dir] = ok
	}
	return ok
}

// worktrees returns the git repositories of folders that are linked work trees or submodules. git writes to such a
// repository, which lies outside the folder. The repository must name the folder, too, because an agent could have
// written the file .git in the folder. The results have no symbolic links.
func worktrees(folders []string) (paths []string) {
	for _, dir := range folders {
		real, err := filepath.EvalSymlinks(dir)
		own, ok := strings.CutPrefix(readSmall(filepath.Join(real, ".git")), "gitdir: ")
		if err != nil || !ok {
			continue
		}
		own, err = filepath.EvalSymlinks(from(real, own))
		if err != nil || isBelow(own, real) {
			continue
		}
		if from(own, readSmall(filepath.Join(own, "gitdir"))) == filepath.Join(real, ".git") &&
			filepath.Base(filepath.Dir(own)) == "worktrees" {
			paths = append(paths, filepath.Dir(filepath.Dir(own)))
		}
		_, tree, _ := strings.Cut(readSmall(filepath.Join(own, "config")), "\tworktree = ")
		tree, _, _ = strings.Cut(tree, "\n")
		if tree != "" && from(own, tree) == real && strings.Contains(own, "/.git/modules/") {
			paths = append(paths, own)
		}
	}
	return paths
}

// from returns the absolute form of a path that is relative to the folder dir.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readSmall returns the text of a regular file of at most 64 KiB, and "" for anything else. It never blocks, even if an
// agent has put a pipe at the path.
func readSmall(path string) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // nothing was written
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<16 {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, 1<<16))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// resolvers returns the folder below /run to which /etc/resolv.conf is a link, or nil. The agent needs this folder to
// resolve names.
func resolvers() []string {
	if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && strings.HasPrefix(real, "/run/") {
		return []string{filepath.Dir(real)}
	}
	return nil
}
