package kernel

import (
	"github.com/dustin/go-humanize"
)

// LowSpace is how much free space, in bytes, is worth a warning: a long run writes some of it, and one
// that cannot be recorded is ended.
const LowSpace = 100 << 20

// warnOfSpace says that the disk will soon be full, while there is time to do something. What
// cannot be measured is not: the log says when it cannot be written.
func (run *run) warnOfSpace() {
	dir := run.r.opt.Paths.Dir
	if free, err := run.r.opt.FreeSpace(dir); err == nil && free < LowSpace {
		run.client.warn("disk_low", "only "+humanize.IBytes(free)+" free at "+dir+": a run ends when its log cannot be written")
	}
}
