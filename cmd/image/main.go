// Command image writes a container image in the OCI image layout. The image has the program, the
// certificates of public authorities, and three folders. The same arguments always give the same bytes.
//
//	image PROGRAM ARCHITECTURE VERSION SECONDS FOLDER
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: image PROGRAM ARCHITECTURE VERSION SECONDS FOLDER")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4], layout(os.Args[5])); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// layout is the path of a folder in the OCI image layout.
type layout string

// A descriptor refers to a file of the layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type object map[string]any

// write writes the image of a program. The seconds since 1970 are the time of all files.
func write(program, arch, version, seconds string, l layout) error {
	binary, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return err
	}
	made := time.Unix(unix, 0).UTC()
	files, err := archive(binary, made)
	if err != nil {
		return err
	}
	var compressed bytes.Buffer
	zip := gzip.NewWriter(&compressed)
	if _, err := zip.Write(files); err != nil {
		return err
	}
	if err := zip.Close(); err != nil {
		return err
	}
	layer, err := l.blob("application/vnd.oci.image.layer.v1.tar+gzip", compressed.Bytes())
	if err != nil {
		return err
	}
	config, err := l.blobJSON("application/vnd.oci.image.config.v1+json", object{
		"created": made, "architecture": arch, "os": "linux",
		"config": object{
			"User": "1000:1000", "WorkingDir": "/work", "Entrypoint": []string{"/usr/bin/perlica"},
			"Env":    []string{"PATH=/usr/bin", "PERLICA_HOME=/perlica", "HOME=/perlica"},
			"Labels": object{"org.opencontainers.image.version": version},
		},
		"rootfs": object{"type": "layers", "diff_ids": []string{digest(files)}},
	})
	if err != nil {
		return err
	}
	manifest, err := l.blobJSON("application/vnd.oci.image.manifest.v1+json", object{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": []descriptor{layer},
	})
	if err != nil {
		return err
	}
	name := "perlica:" + version
	manifest.Annotations = map[string]string{
		"io.containerd.image.name": "docker.io/library/" + name, "org.opencontainers.image.ref.name": version,
	}
	for file, content := range map[string]any{
		"oci-layout": object{"imageLayoutVersion": "1.0.0"},
		"index.json": object{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
			"manifests": []descriptor{manifest}},
		// Older versions of 'docker load' read this file in place of index.json.
		"manifest.json": []object{{"Config": config.path(), "RepoTags": []string{name}, "Layers": []string{layer.path()}}},
	} {
		if err := l.writeJSON(file, content); err != nil {
			return err
		}
	}
	return nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// path returns the path of a descriptor's file in the layout.
func (d descriptor) path() string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }

// blob writes a file whose name is its digest.
func (l layout) blob(mediaType string, content []byte) (descriptor, error) {
	d := descriptor{MediaType: mediaType, Digest: digest(content), Size: len(content)}
	return d, l.write(d.path(), content)
}

func (l layout) blobJSON(mediaType string, value any) (descriptor, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(mediaType, content)
}

func (l layout) writeJSON(name string, value any) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return l.write(name, content)
}

func (l layout) write(name string, content []byte) error {
	file := filepath.Join(string(l), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o644)
}

// archive returns the uncompressed archive of the image's files.
func archive(binary []byte, made time.Time) ([]byte, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue // A file of certificates cannot express the date of distrust.
		}
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	var result bytes.Buffer
	w := tar.NewWriter(&result)
	for _, f := range []struct {
		name    string
		mode    int64
		owner   int
		content []byte
	}{
		{"etc/ssl/certs/", 0o755, 0, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, 0, roots.Bytes()},
		{"perlica/", 0o700, 1000, nil},
		{"tmp/", 0o1777, 0, nil},
		{"usr/bin/", 0o755, 0, nil},
		{"usr/bin/perlica", 0o755, 0, binary},
		{"work/", 0o755, 1000, nil},
	} {
		header := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, ModTime: made,
			Typeflag: tar.TypeReg, Size: int64(len(f.content))}
		if f.content == nil {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return result.Bytes(), w.Close()
}
