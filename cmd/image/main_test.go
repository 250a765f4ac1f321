package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/x509"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImage checks the image's user, program and certificates, all digests of the layout, and that a second image has
// the same bytes.
func TestImage(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("the program"), 0o700); err != nil {
		t.Fatal(err)
	}
	first, second := files(t, program), files(t, program)
	if !maps.Equal(first, second) {
		t.Error("a second image has other bytes")
	}
	for name, content := range first {
		if sum, ok := strings.CutPrefix(name, "blobs/sha256/"); ok && digest([]byte(content)) != "sha256:"+sum {
			t.Errorf("%s has the digest %s", name, digest([]byte(content)))
		}
	}
	var index struct{ Manifests []descriptor }
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	var config struct {
		Architecture string
		Config       struct{ User, WorkingDir string }
		RootFS       struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	read := func(name string, value any) {
		t.Helper()
		if err := json.Unmarshal([]byte(first[name]), value); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	read("index.json", &index)
	read(index.Manifests[0].path(), &manifest)
	read(manifest.Config.path(), &config)
	if config.Architecture != "arm64" || config.Config.User != "1000:1000" || config.Config.WorkingDir != "/work" {
		t.Errorf("the image's configuration is %+v", config)
	}
	zip, err := gzip.NewReader(strings.NewReader(first[manifest.Layers[0].path()]))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := io.ReadAll(zip)
	if err != nil || config.RootFS.DiffIDs[0] != digest(layer) {
		t.Errorf("the layer has the digest %s, the configuration has %v (%v)", digest(layer), config.RootFS.DiffIDs, err)
	}
	owners := map[string]int{}
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		header, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		owners[header.Name] = header.Uid
		content, _ := io.ReadAll(r)
		switch header.Name {
		case "usr/bin/perlica":
			if string(content) != "the program" || header.Mode != 0o755 {
				t.Errorf("the program is %q with mode %o", content, header.Mode)
			}
		case "etc/ssl/certs/ca-certificates.crt":
			if !x509.NewCertPool().AppendCertsFromPEM(content) {
				t.Error("the image has no certificates")
			}
		}
	}
	if owners["work/"] != 1000 || owners["perlica/"] != 1000 || owners["usr/bin/perlica"] != 0 {
		t.Errorf("the files have these owners: %v", owners)
	}
}

// files returns the files of an image.
func files(t *testing.T, program string) map[string]string {
	t.Helper()
	folder := t.TempDir()
	if err := write(program, "arm64", "v0.1.0", "1700000000", layout(folder)); err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	if err := filepath.WalkDir(folder, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		short, _ := filepath.Rel(folder, name)
		result[filepath.ToSlash(short)] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return result
}
