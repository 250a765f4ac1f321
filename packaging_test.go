package perlica_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/build/constraint"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/go-yaml"
)

// targets has the systems of a release. The values name the same system for npm.
var targets = map[string]string{
	"darwin_amd64": "darwin-x64", "darwin_arm64": "darwin-arm64", "linux_amd64": "linux-x64",
	"linux_arm64": "linux-arm64", "windows_amd64": "win32-x64",
}

// release writes small archives of version v0.1.0 into a folder and runs packaging/manifests there.
func release(t *testing.T, systems ...string) (folder string) {
	t.Helper()
	if out, err := exec.Command("tar", "--version").Output(); err != nil || !strings.Contains(string(out), "GNU tar") {
		t.Skip("there is no GNU tar")
	}
	folder = t.TempDir()
	for _, system := range systems {
		exe := "perlica"
		if strings.HasPrefix(system, "windows") {
			exe = "perlica.exe"
		}
		var text bytes.Buffer
		zip := gzip.NewWriter(&text)
		archive := tar.NewWriter(zip)
		for file, content := range map[string]string{
			exe: "#!/bin/sh\nprintf '<%s>' \"$@\" # " + system + "\n", "LICENSE": "a license",
		} {
			header := &tar.Header{Name: "perlica_" + system + "/" + file, Mode: 0o755, Size: int64(len(content))}
			if err := archive.WriteHeader(header); err != nil {
				t.Fatal(err)
			}
			_, _ = io.WriteString(archive, content)
		}
		_, _ = archive.Close(), zip.Close()
		if err := os.WriteFile(filepath.Join(folder, "perlica_0.1.0_"+system+".tar.gz"), text.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("packaging/manifests", "v0.1.0", folder)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", "OWNER=somebody")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("packaging/manifests: %v\n%s", err, out)
	}
	return folder
}

// unpack returns the files of an archive.
func unpack(t *testing.T, name string) map[string][]byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			t.Fatal(err)
		}
	}
}

func readJSON(t *testing.T, text []byte, value any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(value); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
}

// TestPackageVersion checks the versions of packages.
func TestPackageVersion(t *testing.T) {
	for tag, want := range map[string]string{
		"v0.1.0": "0.1.0 \n", "v1.20.3-rc1": "1.20.3 rc1\n", "0.1.0-beta": "0.1.0 beta\n",
		"2e34f425": "0.0.0 git20231114\n", "v0.1.0-4-g2e34f425": "0.0.0 git20231114\n", "v0.1.0-dirty": "0.0.0 git20231114\n",
	} {
		cmd := exec.Command("packaging/version", tag)
		cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000")
		if got, err := cmd.Output(); err != nil || string(got) != want {
			t.Errorf("packaging/version %s prints %q, want %q (%v)", tag, got, want, err)
		}
	}
}

// TestManifests runs packaging/manifests for small archives of all systems, and checks the results.
func TestManifests(t *testing.T) {
	folder := release(t, slices.Collect(maps.Keys(targets))...)
	t.Run("manifests", func(t *testing.T) { checkManifests(t, folder) })
	t.Run("npm", func(t *testing.T) { checkNPM(t, folder) })
	t.Run("action", func(t *testing.T) { runAction(t, folder) })
}

// checkManifests checks that each manifest names the version. For each system it must name the archive's address,
// checksum and program.
func checkManifests(t *testing.T, folder string) {
	seen := map[string]int{} // by system
	check := func(manifest, url, sum, program string) {
		t.Helper()
		dir, name := path.Split(url)
		if dir != "https://github.com/somebody/perlica/releases/download/v0.1.0/" {
			t.Errorf("%s has the address %s", manifest, url)
		}
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatalf("%s: %v", manifest, err)
		}
		if want := sha256.Sum256(text); sum != hex.EncodeToString(want[:]) {
			t.Errorf("%s has the checksum %s of %s, want %x", manifest, sum, name, want)
		}
		if program != "" && unpack(t, filepath.Join(folder, name))[program] == nil {
			t.Errorf("%s names the program %s, which is not in %s", manifest, program, name)
		}
		seen[strings.TrimSuffix(strings.TrimPrefix(name, "perlica_0.1.0_"), ".tar.gz")]++
	}
	read := func(name string) []byte {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}

	var agent struct {
		ID, Name, Version, Description, Repository, License string
		LicenseURL                                          string `json:"license_url"`
		Authors                                             []string
		Distribution                                        struct {
			Binary map[string]struct {
				Archive, SHA256, Cmd string
				Args                 []string
			}
			NPX struct {
				Package string
				Args    []string
			}
		}
	}
	readJSON(t, read("agent.json"), &agent)
	if agent.ID != "perlica" || agent.Version != "0.1.0" || agent.Distribution.NPX.Package != "perlica@0.1.0" {
		t.Errorf("agent.json is %+v", agent)
	}
	for platform, b := range agent.Distribution.Binary {
		system := strings.NewReplacer("-", "_", "aarch64", "arm64", "x86_64", "amd64").Replace(platform)
		check("agent.json", b.Archive, b.SHA256, strings.TrimPrefix(b.Cmd, "./"))
		if !strings.Contains(b.Archive, system) || !slices.Equal(b.Args, []string{"acp"}) {
			t.Errorf("agent.json has for %s %+v", platform, b)
		}
	}

	// The registry puts the number of a new version into the address of an archive, and nowhere else.
	updated := strings.NewReplacer("/v0.1.0/", "/v0.2.0/", "_0.1.0_", "_0.2.0_")
	for platform, b := range agent.Distribution.Binary {
		if rest := updated.Replace(b.Archive) + b.Cmd; strings.Contains(rest, "0.1.0") {
			t.Errorf("the entry of version 0.2.0 for %s would have %s", platform, rest)
		}
	}
	checkIcon(t, read("icon.svg"))

	var scoop struct {
		Version, Description, Homepage, License, Bin string
		Architecture                                 map[string]struct {
			URL, Hash  string
			ExtractDir string `json:"extract_dir"`
		}
	}
	readJSON(t, read("perlica.json"), &scoop)
	a := scoop.Architecture["64bit"]
	check("perlica.json", a.URL, a.Hash, a.ExtractDir+"/"+scoop.Bin)

	formula := string(read("perlica.rb"))
	for _, m := range regexp.MustCompile(`url "(.*)"\n\s*sha256 "(.*)"`).FindAllStringSubmatch(formula, -1) {
		check("perlica.rb", m[1], m[2], "")
	}
	if !strings.Contains(formula, `version "0.1.0"`) || scoop.Version != "0.1.0" {
		t.Errorf("perlica.json has version %s, perlica.rb is\n%s", scoop.Version, formula)
	}
	want := map[string]int{"windows_amd64": 2, "darwin_amd64": 2, "darwin_arm64": 2, "linux_amd64": 2, "linux_arm64": 2}
	if !maps.Equal(seen, want) {
		t.Errorf("the manifests name these archives: %v, want %v", seen, want)
	}
}

// checkIcon checks the rules of the registry for an icon: it is 16 by 16, and it has no colour of its own.
func checkIcon(t *testing.T, icon []byte) {
	if err := xml.Unmarshal(icon, new(struct{})); err != nil {
		t.Errorf("icon.svg: %v", err)
	}
	colours := regexp.MustCompile(`(?:fill|stroke)\s*[=:]\s*"?([^";]*)`).FindAllSubmatch(icon, -1)
	if len(colours) == 0 || !bytes.Contains(icon, []byte(` width="16" height="16" viewBox="0 0 16 16"`)) {
		t.Errorf("icon.svg has no colour or another size: %s", icon)
	}
	for _, c := range colours {
		if string(c[1]) != "currentColor" {
			t.Errorf("icon.svg has the colour %s", c[1])
		}
	}
}

// TestManifestsNeedAllArchives checks that a release of one system has no manifest of all systems, and that a second
// run gives the same bytes.
func TestManifestsNeedAllArchives(t *testing.T) {
	folder := release(t, "windows_amd64")
	read := func() map[string]string {
		files := map[string]string{}
		list, _ := filepath.Glob(filepath.Join(folder, "*"))
		for _, name := range list {
			text, _ := os.ReadFile(name)
			files[filepath.Base(name)] = string(text)
		}
		return files
	}
	first := read()
	want := []string{"perlica-npm-0.1.0.tgz", "perlica-npm-win32-x64-0.1.0.tgz", "perlica.json",
		"perlica_0.1.0_windows_amd64.tar.gz"}
	if got := slices.Sorted(maps.Keys(first)); !slices.Equal(got, want) {
		t.Errorf("the release has %v, want %v", got, want)
	}
	cmd := exec.Command("packaging/manifests", "v0.1.0", folder)
	cmd.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1700000000", "OWNER=somebody")
	if out, err := cmd.CombinedOutput(); err != nil || !maps.Equal(first, read()) {
		t.Errorf("a second run gives other files (%v)\n%s", err, out)
	}
}

// checkNPM checks that the main package depends on one package for each system. Each such package must have the same
// version and the program of its system.
func checkNPM(t *testing.T, folder string) {
	type manifest struct {
		Name, Version, Description, License string
		Repository                          map[string]string
		Bin, OptionalDependencies, Engines  map[string]string
		OS, CPU                             []string
		PreferUnplugged                     bool
		PublishConfig                       struct{ Access string }
	}
	var main manifest
	files := unpack(t, filepath.Join(folder, "perlica-npm-0.1.0.tgz"))
	readJSON(t, files["package/package.json"], &main)
	if main.Name != "perlica" || main.Version != "0.1.0" || files["package/"+main.Bin["perlica"]] == nil {
		t.Errorf("the main package is %+v", main)
	}
	for system, platform := range targets {
		var p manifest
		files := unpack(t, filepath.Join(folder, "perlica-npm-"+platform+"-0.1.0.tgz"))
		readJSON(t, files["package/package.json"], &p)
		if p.Name != "@perlica/"+platform || main.OptionalDependencies[p.Name] != p.Version ||
			p.OS[0]+"-"+p.CPU[0] != platform {
			t.Errorf("the package of %s is %+v; the main package is %+v", platform, p, main)
		}
		program := files["package/bin/perlica"]
		if p.OS[0] == "win32" {
			program = files["package/bin/perlica.exe"]
		}
		if !strings.Contains(string(program), "# "+system) {
			t.Errorf("the package of %s has %q as its program", platform, program)
		}
	}
	if len(main.OptionalDependencies) != len(targets) {
		t.Errorf("the main package depends on %v", main.OptionalDependencies)
	}
}

// runAction runs the steps of the action with a stand-in for curl. The second installation gets a changed archive.
func runAction(t *testing.T, folder string) {
	text, err := os.ReadFile(filepath.Join(folder, "action.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Runs struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	curl := "#!/bin/sh\ncp \"" + folder + "/${2##*/}\" .\n"
	if err := os.WriteFile(filepath.Join(temp, "curl"), []byte(curl), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(step int, env ...string) (string, error) {
		cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", action.Runs.Steps[step].Run)
		cmd.Env = append(os.Environ(), append(env, "RUNNER_TEMP="+temp, "GITHUB_PATH="+temp+"/path",
			"GITHUB_STEP_SUMMARY="+temp+"/summary")...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	linux := []string{"PATH=" + temp + ":" + os.Getenv("PATH"), "RUNNER_OS=Linux", "RUNNER_ARCH=X64"}
	if out, err := run(0, linux...); err != nil {
		t.Fatalf("the installation failed: %v\n%s", err, out)
	}
	bin, err := os.ReadFile(temp + "/path")
	if err != nil {
		t.Fatal(err)
	}
	out, err := run(1, "PATH="+strings.TrimSpace(string(bin))+":"+os.Getenv("PATH"), "PROVIDER=claude",
		"FLAGS=--input-id\na b\n", "TEXT=--hello $(id)")
	const want = "<run><--provider><claude><--newline><--input-id><a b><--><--hello $(id)>"
	if summary, _ := os.ReadFile(temp + "/summary"); err != nil || out != want || string(summary) != want {
		t.Errorf("the action runs %s (%v) with the summary %s", out, err, summary)
	}
	if out, err := run(0, "RUNNER_OS=Linux", "RUNNER_ARCH=ARM"); err == nil {
		t.Errorf("an unknown processor is no error: %s", out)
	}
	changed, err := os.OpenFile(filepath.Join(folder, "perlica_0.1.0_linux_amd64.tar.gz"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = changed.WriteString("x")
	_ = changed.Close()
	if out, err := run(0, linux...); err == nil {
		t.Errorf("a changed archive is no error: %s", out)
	}
}

// TestUnitInDocs checks that docs/service.md shows the unit of the packages.
func TestUnitInDocs(t *testing.T) {
	unit, err := os.ReadFile("packaging/perlica@.service")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/service.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```ini\n"+string(unit)+"```\n") {
		t.Error("docs/service.md does not show packaging/perlica@.service")
	}
}

// TestUntriedOnMacOS writes a list into docs/install.md: the code that runs on macOS and not on Linux. The list has
// files by their build constraints, and lines with the name of the system.
func TestUntriedOnMacOS(t *testing.T) {
	var list strings.Builder
	for _, s := range sources(t) {
		if s.test || s.dir == "cmd/bench" || s.dir == "cmd/measure" {
			continue
		}
		if builtFor(s, "darwin") && !builtFor(s, "linux") {
			fmt.Fprintf(&list, "- `%s`: the file\n", s.name)
			continue
		}
		for line := range strings.Lines(string(s.text)) {
			line = strings.TrimSpace(line)
			if strings.Contains(line, `"darwin"`) && !strings.HasPrefix(line, "//") {
				fmt.Fprintf(&list, "- `%s`: `%s`\n", s.name, line)
			}
		}
	}
	const begin, end = "<!-- begin of the list: go test . -update -->\n", "<!-- end of the list -->\n"
	page, err := os.ReadFile("docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("docs/install.md has no marks around its list of untried code")
	}
	if old == list.String() {
		return
	}
	if !*update {
		t.Fatal("the list of untried code in docs/install.md differs from the code: run go test . -update")
	}
	if err := os.WriteFile("docs/install.md", []byte(before+begin+list.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// builtFor reports whether a file is compiled for a system on an arm64 processor.
func builtFor(s source, system string) bool {
	name := strings.TrimSuffix(path.Base(s.name), ".go")
	for _, other := range []string{"darwin", "linux", "windows"} {
		if other != system && strings.HasSuffix(name, "_"+other) {
			return false
		}
	}
	for line := range strings.Lines(string(s.text)) {
		if strings.HasPrefix(line, "package ") {
			return true
		}
		if expression, err := constraint.Parse(strings.TrimSpace(line)); err == nil {
			return expression.Eval(func(tag string) bool {
				return tag == system || tag == "unix" || tag == "arm64" || strings.HasPrefix(tag, "go1.")
			})
		}
	}
	return true
}
