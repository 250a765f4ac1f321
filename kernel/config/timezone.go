package config

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the timezones
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// timezonesGzip is the IANA database of timezones as a gzip file. Its text has a line with the name and the length of
// each timezone, and an empty line. The data of all timezones follow in the same order.
//
// Package time/tzdata has the same data without compression, which would make the program 0.3 MB larger.
//
//go:embed timezones.gz
var timezonesGzip []byte

// timezones maps the name of each timezone to its data.
var timezones = sync.OnceValue(func() map[string][]byte {
	zones, err := readTimezones()
	if err != nil {
		panic("the embedded timezones are damaged: " + err.Error())
	}
	return zones
})

func readTimezones() (map[string][]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(timezonesGzip))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	list, data, _ := bytes.Cut(text, []byte("\n\n"))
	zones := map[string][]byte{}
	for line := range strings.SplitSeq(string(list), "\n") {
		var name string
		var n int
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			return nil, err
		}
		zones[name], data = data[:n], data[n:]
	}
	return zones, nil
}

// Timezone returns the timezone with a name of the IANA database. If the system has no database, Timezone uses the
// embedded one. Therefore no other package calls time.LoadLocation.
func Timezone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err == nil {
		return zone, nil
	}
	if data := timezones()[name]; data != nil {
		return time.LoadLocationFromTZData(name, data)
	}
	return nil, err
}

// LocalTimezone returns the timezone for time.Local if the variable TZ names one. Without a database of the system, Go
// uses UTC instead. Otherwise LocalTimezone returns local, the present value of time.Local.
func LocalTimezone(local *time.Location, tz string) *time.Location {
	name := strings.TrimPrefix(tz, ":")
	if name == "" || local.String() != time.UTC.String() {
		return local
	}
	if zone, err := Timezone(name); err == nil {
		return zone
	}
	return local
}
