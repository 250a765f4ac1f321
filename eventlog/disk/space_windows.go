package disk

import "golang.org/x/sys/windows"

// FreeSpace returns how many bytes an ordinary user may still write to the file system that holds
// path.
func FreeSpace(path string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	err = windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
	return free, err
}
