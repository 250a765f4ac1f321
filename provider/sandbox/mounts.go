package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// mount is one line of /proc/self/mountinfo: the directory root of the file system on device is mounted at point.
type mount struct {
	device, root, point, kind string
}

func mounts() (list []mount) {
	data, _ := os.ReadFile("/proc/self/mountinfo") // other systems do not have this file
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(data)) {
		before, after, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if len(f) >= 5 && len(kind) >= 1 {
			list = append(list, mount{f[2], unescape.Replace(f[3]), unescape.Replace(f[4]), kind[0]})
		}
	}
	return list
}

// kernelKinds are the types of file systems with which a process can act on the kernel or on other processes.
var kernelKinds = []string{"proc", "sysfs", "cgroup", "cgroup2", "devtmpfs", "devpts", "debugfs", "tracefs",
	"securityfs",
	"configfs", "bpf", "binfmt_misc", "efivarfs", "pstore", "mqueue"}

// kernelFolders returns the mount points with a file system of kernelKinds, but not below /proc, /sys and /dev. For
// example, a folder for chroot may have a proc.
func kernelFolders(mounted []mount) (paths []string) {
	for _, m := range mounted {
		if slices.Contains(kernelKinds, m.kind) && !isBelow(m.point, "/proc") && !isBelow(m.point, "/sys") &&
			!isBelow(m.point, "/dev") {
			paths = append(paths, m.point)
		}
	}
	return paths
}

// aliases returns further paths to the folders. A folder has several paths if it, or a folder above, is mounted at
// several places.
func aliases(mounted []mount, folders []string) (paths []string) {
	for _, dir := range folders {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		var own mount
		for _, m := range mounted { // of two mounts at the same point, the last one covers the other
			if isBelow(real, m.point) && len(m.point) >= len(own.point) {
				own = m
			}
		}
		inside := filepath.Join(own.root, strings.TrimPrefix(real, own.point))
		info, err := os.Stat(real)
		if err != nil {
			continue
		}
		for _, m := range mounted {
			if m.device != own.device || !isBelow(inside, m.root) {
				continue
			}
			alias := filepath.Join(m.point, strings.TrimPrefix(inside, m.root))
			if other, err := os.Stat(alias); alias != real && err == nil && os.SameFile(info, other) {
				paths = append(paths, alias)
			}
		}
	}
	return paths
}

// isBelow reports whether the path is the folder dir or lies below it.
func isBelow(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}
