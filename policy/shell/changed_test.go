package shell

import (
	"slices"
	"strings"
	"testing"
)

// TestRunners checks that Judge asks about a command that runs a changed file, directly or as a recipe such as a
// Makefile. It does not ask about an unchanged file, a compiled or tested source file, or a file that is only read.
func TestRunners(t *testing.T) {
	for changed, commands := range map[string]map[string]string{
		"scripts/x.sh": {
			"./scripts/x.sh": "scripts/x.sh", "scripts/x.sh --fast": "scripts/x.sh",
			"bash scripts/x.sh": "scripts/x.sh", "sh -e scripts/x.sh a": "scripts/x.sh",
			"source scripts/x.sh": "scripts/x.sh", ". ./scripts/x.sh": "scripts/x.sh",
			"/home/me/work/proj/scripts/x.sh": "scripts/x.sh",
			"cd scripts && ./x.sh":            "scripts/x.sh", "env A=1 scripts/x.sh": "scripts/x.sh",
			"timeout 5 bash scripts/x.sh": "scripts/x.sh", "find . -name y -exec scripts/x.sh {} +": "scripts/x.sh",
			"ls | xargs -n1 scripts/x.sh": "scripts/x.sh", "bash -c ./scripts/x.sh": "scripts/x.sh",
			"PATH=$PWD/scripts:$PATH x.sh":             "scripts/x.sh",
			"for i in 1 2; do ./scripts/x.sh $i; done": "scripts/x.sh",
			"f() { ./scripts/x.sh; }; f":               "scripts/x.sh", "cp scripts/x.sh y.sh && sh y.sh": "y.sh",
			"mv scripts/x.sh y; ./y": "y", "ln -s scripts/x.sh y && ./y": "y", "bash scripts/*.sh": "scripts/x.sh",
			"./Scripts/X.SH": "scripts/x.sh", "x=scripts/x.sh; $x": "scripts/x.sh",
			"nohup ./scripts/x.sh &": "scripts/x.sh", "python3 scripts/x.sh": "scripts/x.sh",
			"make -f scripts/x.sh":          "scripts/x.sh",
			"git bisect run ./scripts/x.sh": "scripts/x.sh", "find . -name '*.sh' -exec sh {} \\;": "a file",
			"ls | entr ./scripts/x.sh": "scripts/x.sh", "hyperfine scripts/x.sh": "scripts/x.sh",
			"alias q=scripts/x.sh; q": "scripts/x.sh", "trap scripts/x.sh EXIT": "scripts/x.sh",
			"awk -f scripts/x.sh y": "scripts/x.sh", "find . -name '*.sh' -exec bash -n {} \\;": "",
			"cat scripts/x.sh": "", "git diff scripts/x.sh": "", "shellcheck scripts/x.sh": "",
			"chmod +x scripts/x.sh": "", "./scripts/y.sh": "", "bash -n scripts/x.sh": "", "make": "", "npm test": "",
			"./other/x.sh": "", "grep foo scripts/x.sh": "", "bash scripts/y.sh scripts/x.sh": "",
			"rm scripts/x.sh": "",
		},
		"tools/gen.py": {
			"python3 tools/gen.py": "tools/gen.py", "python -u tools/gen.py --out x": "tools/gen.py",
			"python3 -m tools.gen": "tools/gen.py", "uv run tools/gen.py": "tools/gen.py",
			"uv run python tools/gen.py":     "tools/gen.py",
			"poetry run python tools/gen.py": "tools/gen.py", "python3 < tools/gen.py": "a file",
			"cat tools/gen.py | python3": "a file", "cd tools; python3 gen.py": "tools/gen.py",
			"streamlit run tools/gen.py": "tools/gen.py",
			"python3 -mtools.gen":        "tools/gen.py", "python3 -m cProfile tools/gen.py": "tools/gen.py",
			"coverage run tools/gen.py": "tools/gen.py", "uvicorn tools.gen:app": "tools/gen.py",
			"flask --app tools.gen run": "tools/gen.py",
			"pytest":                    "", "python3 -m pytest tools": "", "ruff check tools/gen.py": "", "mypy tools": "",
			"python3 other.py tools/gen.py": "", "python3 -m json.tool x.json": "", "pip install -e .": "",
		},
		"src/index.js": {
			"node src/index.js": "src/index.js", "node src": "src/index.js", "node ./src/index": "src/index.js",
			"bun src/index.js": "src/index.js", "bun run src/index.js": "src/index.js",
			"deno run src/index.js": "src/index.js",
			"npx tsx src/index.js":  "src/index.js", "node -r ./src/index.js other.js": "src/index.js",
			"nodemon src/index.js": "src/index.js",
			"npm test":             "", "npx eslint src/index.js": "", "npx jest src/index.js": "", "npm run build": "",
			"npx prettier --write src/index.js": "",
		},
		"cmd/x/main.go": {
			"go run cmd/x/main.go": "cmd/x/main.go", "go generate ./...": "cmd/x/main.go",
			"go run cmd/x/other.go cmd/x/main.go": "cmd/x/main.go",
			"go test ./...":                       "", "go build ./...": "", "go run ./cmd/x": "", "go vet ./...": "",
			"gofmt -w cmd/x/main.go": "", "go build -o bin/x ./cmd/x && ./bin/x": "", "make test": "",
		},
		"Makefile": {"make": "Makefile", "make -j4 test": "Makefile", "cd sub && make": "Makefile",
			"gmake all": "Makefile", "make --version": "", "go test ./...": "", "cat Makefile": ""},
		"mk/rules.mk": {"make": "mk/rules.mk", "ninja": "mk/rules.mk"},
		"package.json": {"npm test": "package.json", "npm run build": "package.json", "yarn build": "package.json",
			"pnpm -r run build": "package.json", "npm start": "package.json", "npm install": "package.json",
			"npm ls": "", "npx jest": "", "cat package.json | jq .scripts": ""},
		"build.rs": {"cargo build": "build.rs", "cargo test": "build.rs", "cargo fmt": "", "cargo tree": ""},
		"conftest.py": {"pytest": "conftest.py", "python -m pytest": "conftest.py",
			"uv run pytest -k x": "conftest.py", "coverage run -m pytest": "", "python3 x.py": ""},
		"build.gradle":  {"./gradlew test": "build.gradle", "gradle build": "build.gradle"},
		"sub/build.sbt": {"sbt test": "sub/build.sbt"},
		"gradlew":       {"./gradlew test": "gradlew"},
		"CMakeLists.txt": {"cmake --build build": "CMakeLists.txt", "cmake -B build": "CMakeLists.txt",
			"ctest": "CMakeLists.txt"},
		"vite.config.ts": {"vite build": "vite.config.ts", "npm run build": "vite.config.ts",
			"npx vitest": "vite.config.ts"},
		"justfile": {"just test": "justfile"}, "Taskfile.yml": {"task build": "Taskfile.yml"}, "tox.ini": {
			"tox -e py": "tox.ini"}, "noxfile.py": {"nox": "noxfile.py"},
		"setup.py": {"pip install -e .": "setup.py", "python setup.py build": "setup.py", "pip list": ""},
		"Rakefile": {"rake test": "Rakefile", "bundle exec rake": "Rakefile"}, "docker-compose.yml": {
			"docker compose up -d": "docker-compose.yml", "docker ps": "", "docker compose logs": ""},
		"tool": {"tool/run.sh": "tool", "./toolbox/run.sh": ""}, // the session moved a folder to this path
	} {
		place := at
		place.Changed = Changed{}
		place.Changed.Add(at.Dir + "/" + changed)
		for command, file := range commands {
			j := Judge(Command{Text: command}, place)
			if plain := Judge(Command{Text: command}, at).Verdict; plain.Tier != Ordinary &&
				!strings.Contains(plain.Why, "this session changed") {
				t.Errorf("%s: asked about anyway: %s", command, plain.Why)
			}
			v := j.Verdict
			if file == "" && v.Tier != Ordinary || file != "" &&
				(v.Tier != AlwaysAsked || !v.Unknown || !strings.Contains(v.Why, "this session changed") ||
					!strings.Contains(v.Why, file)) {
				t.Errorf("changed %s: %s: %+v, want %q", changed, command, v, file)
			}
		}
	}
}

// TestRunsWhatItWrote checks commands that write a script and run it. The verdict follows from the text of the script,
// even if several writes together make it. Judge asks about a script with an unknown text.
func TestRunsWhatItWrote(t *testing.T) {
	for command, want := range map[string]Tier{
		"cat > x.sh <<'E'\ngo test ./...\nE\nbash x.sh":                Ordinary,
		"printf 'go vet\\n' > x.sh; sh x.sh":                           Ordinary,
		"cat > x.py <<'E'\nprint(1)\nE\npython3 x.py":                  Ordinary,
		"printf '#!/bin/sh\\nls\\n' > x; chmod +x x; ./x":              Ordinary,
		"cp a.sh b.sh && sh b.sh":                                      Ordinary,
		"go build -o bin/x . && bin/x":                                 Ordinary,
		"make > build.log; cat build.log":                              Ordinary,
		"cat > x.sh <<'E'\nsudo reboot\nE\nbash x.sh":                  AlwaysAsked,
		"cat > x.py <<'E'\nimport os; os.remove('x')\nE\npython3 x.py": AlwaysAsked,
		"printf '#!/usr/bin/perl\\nunlink x\\n' > x; ./x":              AlwaysAsked,
		"./gen > x.sh; sh x.sh":                                        AlwaysAsked,
		"echo ls > x.sh; ./gen >> x.sh; sh x.sh":                       AlwaysAsked,
		"echo ls > x.sh; sed -i s/ls/id/ x.sh; sh x.sh":                AlwaysAsked,
		"./gen | tee x.sh; ./x.sh":                                     AlwaysAsked,
		"echo 'all:; id' > Makefile && make":                           AlwaysAsked,
		"sed -i s/a/b/ package.json && npm test":                       AlwaysAsked,
		"tr a b < y > x.py && python3 x.py":                            AlwaysAsked,
	} {
		if v := classify(command, at); v.Tier != want {
			t.Errorf("%s: %+v, want %s", command, v, want)
		}
	}
}

// TestWhatACommandChanges checks that Judgement.Changed lists the written files for many ways to write a file. It does
// not list the output of a compiler or a formatter.
func TestWhatACommandChanges(t *testing.T) {
	for command, want := range map[string]string{
		"echo ls > x.sh": "x.sh", "./gen | tee x.sh >> y.sh": "x.sh y.sh", "sed -i s/a/b/ x.sh": "x.sh",
		"cp a x.sh": "x.sh x.sh/a", "mv a x.sh": "x.sh x.sh/a", "perl -pi -e s/a/b/ x.sh": "x.sh",
		"dd if=a of=x.sh": "x.sh", "patch -p1 <<'E'\n--- a/x.sh\n+++ b/x.sh\n@@ -1 +1 @@\n-a\n+b\nE": "x.sh",
		"install -m 755 a bin": "bin bin/a", "cd s && echo a > x.sh": "s/x.sh", "sort -o x.sh a": "x.sh",
		"sed -i s/a/b/ s/*.sh":               "s",
		"curl -o x.sh https://example.com/x": "x.sh", "curl -O https://example.com/i.sh": "i.sh",
		"go build -o x .": "", "gofmt -w x.go": "", "prettier --write package.json": "", "mkdir -p x": "",
		"chmod +x x": "", "cat x > /dev/null": "", "ls": "",
	} {
		var got []string
		for _, p := range Judge(Command{Text: command}, at).Changed {
			got = append(got, strings.TrimPrefix(p, at.Dir+"/"))
		}
		slices.Sort(got)
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
