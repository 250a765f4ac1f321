package shell

import (
	"slices"
	"strings"
)

// A setting is a program that changes the machine: its power, services, kernel, mounts or
// network. Its words show whether it only reads.
type setting struct {
	shows []string // with one of these as first operand or option it only shows
	bare  bool     // without operands it only shows
	acts  []string // if not empty, it changes something only with one of these
}

var settings = named(func() map[string]setting {
	return map[string]setting{
		"shutdown":             {shows: []string{"--help", "-c", "--show"}},
		"reboot halt poweroff": {shows: []string{"--help"}},
		"init":                 {acts: []string{"0", "1", "6", "s", "S"}},
		"systemctl":            {bare: true, shows: []string{"status", "show", "cat", "list-units", "list-unit-files", "list-timers", "list-sockets", "list-dependencies", "list-jobs", "list-machines", "is-active", "is-enabled", "is-failed", "is-system-running", "get-default", "show-environment", "help", "--version", "--help", "--failed"}},
		"service":              {bare: true, shows: []string{"--status-all", "status"}},
		"rc-service":           {shows: []string{"-l", "status"}},
		"launchctl":            {bare: true, shows: []string{"list", "print", "help", "version"}},
		"sv":                   {shows: []string{"status"}},
		"initctl":              {shows: []string{"list", "status"}},
		"loginctl":             {bare: true, shows: []string{"list-sessions", "list-users", "show-session", "show-user", "session-status", "user-status"}},
		"journalctl":           {acts: []string{"--vacuum-size", "--vacuum-time", "--vacuum-files", "--rotate", "--flush"}, bare: true},
		"chkconfig":            {bare: true, shows: []string{"--list"}},
		"update-alternatives":  {acts: []string{"--set", "--install", "--remove", "--config", "--auto", "--remove-all"}},

		"iptables":     {acts: []string{"-A", "-I", "-D", "-F", "-X", "-P", "-R", "-N", "-Z", "-t", "--flush", "--append", "--insert", "--delete", "--policy", "--delete-chain"}},
		"ip6tables":    {acts: []string{"-A", "-I", "-D", "-F", "-X", "-P", "-R", "-N", "-Z", "-t", "--flush"}},
		"ipset":        {shows: []string{"list", "-L"}},
		"nft":          {shows: []string{"list", "-c", "--version"}},
		"ufw":          {shows: []string{"status", "show", "version"}},
		"pfctl":        {shows: []string{"-s", "-sa", "-sr", "-si"}},
		"firewall-cmd": {shows: []string{"--list-all", "--state", "--list-ports", "--list-services", "--get-default-zone", "--get-zones", "--get-active-zones", "--query-service", "--query-port", "--zone"}},
		"netsh":        {acts: []string{"set", "add", "delete", "reset"}},
		"ip":           {acts: []string{"add", "del", "delete", "set", "flush", "change", "replace", "append", "exec", "a+"}, bare: true},
		"route":        {acts: []string{"add", "del", "delete", "flush", "change"}, bare: true},
		"arp":          {acts: []string{"-d", "-s"}, bare: true},
		"ifconfig":     {acts: []string{"up", "down", "netmask", "add", "del", "hw", "mtu", "inet", "alias", "-alias", "delete"}, bare: true},
		"nmcli":        {acts: []string{"up", "down", "add", "modify", "delete", "connect", "disconnect", "on", "off", "reload", "import", "set"}, bare: true},
		"iw":           {acts: []string{"set", "add", "del", "disconnect", "connect"}},
		"iwconfig":     {acts: []string{"essid", "mode", "key", "txpower"}, bare: true},
		"tc":           {acts: []string{"add", "del", "change", "replace", "delete"}},
		"brctl":        {shows: []string{"show", "showmacs", "showstp"}},
		"ethtool":      {acts: []string{"-s", "-K", "-A", "-C", "-G", "-L", "-E", "-f", "-r", "-P"}},
		"resolvectl":   {acts: []string{"dns", "domain", "revert", "flush-caches", "default-route"}, bare: true},
		"hostnamectl":  {bare: true, shows: []string{"status", "show"}},
		"hostname":     {bare: true, shows: []string{"-f", "-i", "-I", "-s", "-d", "-a", "-A", "--fqdn", "--short", "--ip-address", "--all-ip-addresses", "-y"}},
		"networksetup": {acts: []string{"-set*"}},
		"scutil":       {acts: []string{"--set"}},
		"wg":           {bare: true, shows: []string{"show", "genkey", "pubkey", "genpsk"}},
		"tailscale":    {acts: []string{"up", "down", "logout", "set", "funnel", "serve"}},

		"sysctl":         {acts: []string{"-w", "--write", "-p", "--load", "--system", "*=*"}},
		"modprobe":       {shows: []string{"-n", "--dry-run", "-c", "--showconfig", "-D", "--show-depends", "-R"}},
		"kmod":           {acts: []string{"insert", "remove", "load", "unload"}},
		"dkms csrutil":   {shows: []string{"status"}},
		"mount":          {bare: true, shows: []string{"-l", "--version", "-V", "--help", "-h"}},
		"swapon":         {bare: true, shows: []string{"-s", "--show", "--summary"}},
		"losetup":        {bare: true, shows: []string{"-a", "-l", "-j", "--list", "--all"}},
		"dmsetup":        {shows: []string{"ls", "info", "status", "table", "deps"}},
		"hdiutil":        {shows: []string{"info", "imageinfo", "verify", "help"}},
		"exportfs":       {bare: true, shows: []string{"-v", "-s"}},
		"semanage":       {acts: []string{"-a", "-d", "-m"}},
		"auditctl":       {shows: []string{"-l", "-s", "-v"}},
		"efibootmgr":     {bare: true, shows: []string{"-v", "--verbose"}},
		"bootctl":        {bare: true, shows: []string{"status", "list"}},
		"fwupdmgr":       {shows: []string{"get-devices", "get-updates"}},
		"ldconfig":       {shows: []string{"-p", "-v", "--print-cache"}},
		"timedatectl":    {bare: true, shows: []string{"status", "show", "list-timezones", "timesync-status"}},
		"hwclock":        {acts: []string{"-w", "-s", "--systohc", "--hctosys", "--set"}, bare: true},
		"date":           {acts: []string{"-s", "--set"}, bare: true},
		"localectl":      {bare: true, shows: []string{"status", "list-locales", "list-keymaps"}},
		"nvram":          {shows: []string{"-p", "-xp"}},
		"spctl":          {shows: []string{"--status", "--assess", "-a"}},
		"pmset":          {shows: []string{"-g"}},
		"systemsetup":    {acts: []string{"-set*"}},
		"defaults":       {acts: []string{"write", "delete", "import", "rename"}},
		"softwareupdate": {acts: []string{"-i", "--install", "--reset-ignored"}},
		"gsettings":      {acts: []string{"set", "reset", "reset-recursively"}},
		"dconf":          {acts: []string{"write", "reset", "load"}},

		// What leaves code that runs later.
		"crontab":            {shows: []string{"-l", "-V", "-h"}},
		"fcrontab incrontab": {shows: []string{"-l"}},
		"direnv":             {acts: []string{"allow", "permit", "grant"}},
		"schtasks":           {acts: []string{"/create", "/delete", "/change", "/run"}},

		// Windows.
		"format":   {bare: true},
		"iex":      {shows: []string{"-S", "--version", "-v"}},
		"reg":      {acts: []string{"add", "delete", "import", "load", "restore"}},
		"sc":       {acts: []string{"stop", "delete", "config", "create", "start"}},
		"sc.exe":   {acts: []string{"stop", "delete", "config", "create"}},
		"net":      {acts: []string{"user", "stop", "start", "localgroup", "use", "share"}},
		"bcdedit":  {bare: true, shows: []string{"/enum"}},
		"icacls":   {acts: []string{"/grant", "/deny", "/reset", "/remove", "/setowner", "/inheritance:r"}},
		"vssadmin": {acts: []string{"delete", "resize"}},
		"wbadmin":  {acts: []string{"delete"}},
		"wmic":     {acts: []string{"delete", "call", "create"}},
		"cipher":   {acts: []string{"/w*"}},
		"wevtutil": {acts: []string{"cl"}},
		"taskkill": {acts: []string{"/f", "/F"}},
		"certutil": {acts: []string{"-urlcache", "-decode", "-addstore"}},
	}
})

// changing are the programs that change the machine with any words.
var changing = []string{
	"telinit", "kexec", "killall5", "start-stop-daemon", "pm-suspend", "pm-hibernate", "rtcwake", "update-rc.d", "iptables-restore", "ip6tables-restore",
	"ebtables", "ifup", "ifdown", "wg-quick", "insmod", "rmmod", "depmod", "umount", "unmount", "swapoff", "fusermount", "sshfs", "quotaon", "quotaoff",
	"fsfreeze", "setenforce", "setsebool", "aa-disable", "aa-teardown", "update-initramfs", "dracut", "mkinitcpio", "grub-install", "update-grub",
	"grub-mkconfig", "grub2-mkconfig", "flashrom", "ntpdate", "dseditgroup", "sysadminctl", "atrm", "register-scheduledjob", "new-service", "remove-item",
	"del", "erase", "rd", "stop-computer", "restart-computer", "invoke-expression", "clear-content", "clear-disk", "format-volume", "remove-partition",
	"initialize-disk", "diskpart", "set-executionpolicy", "start-process", "stop-service", "stop-process", "remove-service", "set-service",
	"set-itemproperty", "remove-itemproperty", "new-itemproperty", "regedit", "takeown", "setx", "mshta", "regsvr32", "rundll32", "start-bitstransfer",
	"deltree",
}

// machine asks about changes of the machine. It says whether the program is known.
func (w *walker) machine(name string, fs []field) bool {
	s, found := settings()[name]
	if !found && !slices.Contains(changing, name) {
		return false
	}
	args := fs[1:]
	shows := len(args) == 0 && s.bare || len(args) == 1 && (args[0].text == "--help" || args[0].text == "--version")
	if len(s.acts) > 0 {
		shows = !slices.ContainsFunc(args, func(f field) bool {
			return slices.ContainsFunc(s.acts, func(act string) bool {
				word, _, _ := strings.Cut(f.text, "=")
				return word == act || strings.EqualFold(word, act) && strings.HasPrefix(act, "/") || inOrder([]string{act}, []string{f.text}, false)
			})
		}) || len(args) == 0
	}
	for i, f := range args {
		if len(s.acts) == 0 && slices.Contains(s.shows, f.text) && (i == 0 || strings.HasPrefix(args[i-1].text, "-") || strings.HasPrefix(f.text, "-") || name == "service" && i == 1) {
			shows = true
		}
	}
	if name == "systemctl" && len(args) > 0 {
		shows = shows || among(args, s.shows...)
	}
	if !shows {
		w.ask("changes the machine or what runs on it: %s", shown(fs))
	}
	return true
}

// kill asks about signals to everything, or to the first process.
func (w *walker) kill(name string, fs []field) {
	all := false
	signal := true // the first -N is a signal
	for _, f := range fs[1:] {
		switch {
		case f.text == "--":
			signal = false
		case name == "kill" && (f.text == "-1" && !signal || f.text == "1" || f.text == "0" && !signal):
			all = true
		case name == "kill" && strings.HasPrefix(f.text, "-"):
			signal = false
		case name != "kill" && (f.text == "-u" || f.text == "-U" || f.text == "--user" || f.text == "--euid" || f.text == "-v" || f.text == "--inverse" || f.text == "." || f.text == ".*"):
			all = true
		case name != "kill" && slices.Contains([]string{"systemd", "init", "sshd", "launchd", "perlica"}, f.text):
			all = true
		}
	}
	if all {
		w.ask("ends processes that are not its own: %s", shown(fs))
	}
}

// container asks about containers that reach the whole machine.
func (w *walker) container(fs []field) {
	for i, f := range fs[1:] {
		next := ""
		if i+2 < len(fs) {
			next = fs[i+2].text
		}
		name, value, has := strings.Cut(f.text, "=")
		if !has {
			value = next
		}
		lower := strings.ToLower(value)
		open := false
		switch name {
		case "--privileged":
			open = !has || value != "false"
		case "--cap-add":
			open = slices.Contains([]string{"all", "sys_admin", "cap_sys_admin", "sys_module", "sys_ptrace", "sys_rawio", "dac_read_search"}, lower)
		case "--pid", "--ipc", "--userns", "--uts", "--cgroupns":
			open = value == "host"
		case "--device":
			open = device(strings.SplitN(value, ":", 2)[0]) == diskDevice && !strings.HasPrefix(value, "/dev/nvidia") && !strings.HasPrefix(value, "/dev/kfd")
		case "--security-opt":
			open = strings.Contains(lower, "unconfined") || strings.Contains(lower, "disable")
		case "-v", "--volume", "--mount":
			open = w.mounts(value)
		default:
			if strings.HasPrefix(name, "-v") && len(f.text) > 2 && f.text[2] == '/' {
				open = w.mounts(f.text[2:])
			}
		}
		if open {
			w.ask("a container that reaches the whole machine: %s", shown(fs))
			return
		}
	}
}

// mounts says whether a volume gives a container the root, the home, a system directory
// or the socket of the service that starts containers.
func (w *walker) mounts(volume string) bool {
	source, _, _ := strings.Cut(volume, ":")
	if strings.Contains(volume, "source=") || strings.Contains(volume, "src=") {
		for part := range strings.SplitSeq(volume, ",") {
			if key, value, _ := strings.Cut(part, "="); key == "source" || key == "src" {
				source = value
			}
		}
	}
	source = w.home(source)
	if source == "~" {
		source = w.place.Home
	}
	if !strings.HasPrefix(source, "/") {
		return false
	}
	target := slashPath(source)
	if strings.HasSuffix(target, ".sock") || isPrivate(target) || w.place.owns(target, false) {
		return true
	}
	if what, _ := w.place.loss(target, false); what != "" && target != w.place.Dir {
		return !strings.HasSuffix(volume, ":ro") || target == "/"
	}
	system := []string{"/etc", "/usr", "/boot", "/sys", "/proc", "/var/run", "/run", "/bin", "/sbin", "/lib", "/root"}
	return !strings.HasSuffix(volume, ":ro") && slices.ContainsFunc(system, func(dir string) bool { return within(dir, target) })
}
