package config

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestTimezones compares the embedded timezones with those of the Go tools. With -update it embeds those.
func TestTimezones(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var list, data bytes.Buffer
	of := map[string][]byte{}
	for _, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		zone, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		of[f.Name] = zone
		fmt.Fprintf(&list, "%s %d\n", f.Name, len(zone))
		data.Write(zone)
	}
	if *update {
		var out bytes.Buffer
		w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression)
		list.WriteByte('\n')
		if _, err := w.Write(append(list.Bytes(), data.Bytes()...)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		timezonesGzip = out.Bytes()
		if err := os.WriteFile("timezones.gz", timezonesGzip, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := readTimezones()
	if err != nil || len(got) != len(of) {
		t.Fatalf("got %d timezones and %v, want %d; run go test ./kernel/config -update", len(got), err, len(of))
	}
	for name, want := range of {
		if !bytes.Equal(got[name], want) {
			t.Errorf("%s differs from the Go tools' database; run go test ./kernel/config -update", name)
		}
		if _, err := time.LoadLocationFromTZData(name, got[name]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimezone(t *testing.T) {
	summer := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{"UTC": "12:00", "Europe/Berlin": "14:00", "Asia/Shanghai": "20:00"} {
		zone, err := Timezone(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := summer.In(zone).Format("15:04"); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	for _, name := range []string{"Nowhere/City", "../etc/passwd"} {
		if zone, err := Timezone(name); err == nil {
			t.Errorf("%s: got %v, want an error", name, zone)
		}
	}
}

func TestLocalTimezone(t *testing.T) {
	berlin, err := Timezone("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		local *time.Location
		tz    string
		want  string
	}{
		{time.UTC, "", "UTC"},
		{time.UTC, "UTC", "UTC"},
		{time.UTC, "Asia/Shanghai", "Asia/Shanghai"},
		{time.UTC, ":Asia/Shanghai", "Asia/Shanghai"},
		{time.UTC, "Nowhere/City", "UTC"},
		{berlin, "Asia/Shanghai", "Europe/Berlin"},
	} {
		if got := LocalTimezone(c.local, c.tz).String(); got != c.want {
			t.Errorf("%v with TZ=%s: got %s, want %s", c.local, c.tz, got, c.want)
		}
	}
}
