package device

import (
	"strconv"
	"time"
)

// Fill lets a device sign the largest number of remembered requests.
func Fill(d *Devices, id string, now time.Time) {
	for i := range mostSigned {
		d.seen.first(id, strconv.Itoa(i), now)
	}
}
