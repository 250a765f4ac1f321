package device

import (
	"strconv"
	"time"
)

// Fill makes a device have signed as many requests as are remembered.
func Fill(d *Devices, id string, now time.Time) {
	for i := range mostSigned {
		d.seen.first(id, strconv.Itoa(i), now)
	}
}
