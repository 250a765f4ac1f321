package descent

import (
	"net/netip"
	"os"
	"syscall"
	"time"
	"unicode/utf16"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Announce does nothing on this system. On Linux it marks the Perlica that becomes the parent of an agent's orphans. On
// this system an orphan gets another parent.
func Announce(string) error { return nil }

// ancestry reads a process and its ancestors. A process number may have passed to a younger process, which is
// then not a parent.
func ancestry(pid int) ([]link, error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, errHidden
	}
	defer func() { _ = windows.CloseHandle(snapshot) }() // only used for reading
	all := map[int]windows.ProcessEntry32{}
	var e windows.ProcessEntry32
	e.Size = uint32(unsafe.Sizeof(e))
	for err = windows.Process32First(snapshot, &e); err == nil; err = windows.Process32Next(snapshot, &e) {
		all[int(e.ProcessID)] = e
	}
	var links []link
	for pid > 0 && len(links) < len(all) {
		e, ok := all[pid]
		if !ok {
			break
		}
		l := link{Process: Process{PID: pid, Name: windows.UTF16ToString(e.ExeFile[:])}}
		l = look(l)
		if n := len(links); n > 0 && l.Started.After(links[n-1].Started) {
			break
		}
		links = append(links, l)
		pid = int(e.ParentProcessID)
	}
	if len(links) == 0 {
		return nil, errHidden
	}
	return links, nil
}

// look reads the start and the environment of a process, as far as it is permitted.
func look(l link) link {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_INFORMATION|windows.PROCESS_VM_READ, false, uint32(l.PID))
	if err != nil {
		return l
	}
	defer func() { _ = windows.CloseHandle(h) }() // only used for reading
	var made, ended, kernel, user windows.Filetime
	if windows.GetProcessTimes(h, &made, &ended, &kernel, &user) == nil {
		l.Started = time.Unix(0, made.Nanoseconds())
	}
	return l.environ(environOf(h))
}

// maxEnviron limits the size of an environment, in bytes.
const maxEnviron = 1 << 20

// environOf reads an environment from the memory of a process.
func environOf(h windows.Handle) (env []string) {
	var basic windows.PROCESS_BASIC_INFORMATION
	if windows.NtQueryInformationProcess(h, windows.ProcessBasicInformation, unsafe.Pointer(&basic),
		uint32(unsafe.Sizeof(basic)), nil) != nil {
		return nil
	}
	var peb windows.PEB
	var param windows.RTL_USER_PROCESS_PARAMETERS
	if !read(h, uintptr(unsafe.Pointer(basic.PebBaseAddress)), unsafe.Pointer(&peb), unsafe.Sizeof(peb)) ||
		!read(h, uintptr(unsafe.Pointer(peb.ProcessParameters)), unsafe.Pointer(&param), unsafe.Sizeof(param)) ||
		param.EnvironmentSize < 2 {
		return nil
	}
	text := make([]uint16, min(param.EnvironmentSize, maxEnviron)/2)
	if !read(h, uintptr(param.Environment), unsafe.Pointer(&text[0]), uintptr(len(text)*2)) {
		return nil
	}
	for start, i := 0, 0; i < len(text); i++ {
		if text[i] == 0 {
			env = append(env, string(utf16.Decode(text[start:i])))
			start = i + 1
		}
	}
	return env
}

func read(h windows.Handle, at uintptr, to unsafe.Pointer, size uintptr) bool {
	var n uintptr
	return windows.ReadProcessMemory(h, at, (*byte)(to), size, &n) == nil && n == size
}

// namespaced returns false, because this system has no namespaces.
func namespaced() (partial, hidden bool) { return false, false }

// ownBrand finds nothing, because no process can read the brand of another one on this system.
func ownBrand() (mode string, ok bool) { return "", false }

// Born returns the creation time of a file.
func Born(path string) (at time.Time, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return at, false
	}
	d, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return at, false
	}
	return time.Unix(0, d.CreationTime.Nanoseconds()), true
}

// Terminal returns "console" if this process has a console, or "".
func Terminal() string {
	f, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return ""
	}
	_ = f.Close() // nothing was written
	return "console"
}

// unixPeer returns 0, because the process is unknown on this system.
func unixPeer(syscall.Conn) (int, error) { return 0, nil }

// tcpOwners returns nothing, because Perlica does not look up sockets on this system.
func tcpOwners(netip.AddrPort, netip.AddrPort) ([]int, error) { return nil, nil }
