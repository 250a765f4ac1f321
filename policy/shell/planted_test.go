package shell

import "testing"

// TestPlanted checks that a change of a file in targets.txt needs a person, also under another spelling of the
// file's name. A change of the file's folder needs a person, too. Other hidden files need no person.
func TestPlanted(t *testing.T) {
	at := Place{Dir: "/w/proj", Home: "/home/me", Temp: []string{"/tmp"}}
	for _, name := range []string{
		".git", ".GIT/config", ".git\u200c/hooks/pre-commit", ".git./config", ".git /config", "GIT~1/config",
		".git::$INDEX_ALLOCATION/config",
		"sub/.git/config", ".husky", ".husky/pre-commit", ".Claude/settings.local.json", "CLAUDE~1/settings.json",
		".mcp.json", "MCP~1.JSO",
		".envrc", "a/b/.envrc", ".github", ".github/workflows/ci.yml", ".GitLab-CI.yml", "GITLAB~1.YML",
		".vscode/tasks.json", "x.code-workspace",
		".npmrc", ".cargo/config.toml", ".ſsh/config", ".bashrc", "Jenkinsfile", ".idea/workspace.xml",
		".pre-commit-config.yaml", ".dir-locals.el",
	} {
		if v := at.Change("edit", name, "/w/proj/"+name); v.Tier != AlwaysAsked {
			t.Errorf("an edit of %q is %s", name, v.Tier)
		}
		if v := Judge(Command{Argv: []string{"cp", "x", name}}, at).Verdict; v.Tier != AlwaysAsked {
			t.Errorf("cp x %q is %s", name, v.Tier)
		}
		if v := Judge(Command{Argv: []string{"rm", "-r", name}}, at).Verdict; v.Tier != AlwaysAsked {
			t.Errorf("rm -r %q is %s", name, v.Tier)
		}
	}
	for _, name := range []string{
		".gitignore", ".gitattributes", ".github/CODEOWNERS", ".editorconfig", ".prettierrc", ".eslintrc.json",
		".env", ".env.example", ".nvmrc",
		".git/info/exclude", "src/git/config", "profile", "github/workflows/x.yml", "AGENTS.md", "CLAUDE.md",
		".cursorrules", ".config/app.toml",
		"Makefile", "package.json", "etc/passwd", "docs/vscode/tasks.json", "backup~1", ".dockerignore",
		".golangci.yml",
	} {
		if v := at.Change("edit", name, "/w/proj/"+name); v.Tier != Ordinary {
			t.Errorf("an edit of %q is %s: %s", name, v.Tier, v.Why)
		}
	}
	for command, want := range map[string]Tier{
		"mkdir -p .github/workflows": Ordinary, "mkdir .vscode": Ordinary, "rm -f .git/index.lock": Ordinary,
		"echo x > .github/workflows/ci.yml": AlwaysAsked,
		"sed -i s/a/b/ .envrc":              AlwaysAsked, "echo x | tee -a .npmrc": AlwaysAsked, "rm -rf .hus*": AlwaysAsked,
		"mv x .claude/settings.json": AlwaysAsked,
		"cp -r hooks .husky":         AlwaysAsked, "rm -rf node_modules .next": Ordinary, "cat .envrc .git/config": Ordinary,
		"cd .vscode && echo x > tasks.json": AlwaysAsked,
	} {
		if v := Judge(Command{Text: command}, at).Verdict; v.Tier != want {
			t.Errorf("%s is %s: %s", command, v.Tier, v.Why)
		}
	}
	inside := Place{Dir: "/home/me/.config/nvim", Home: "/home/me"}
	if v := inside.Change("edit", "init.lua", "/home/me/.config/nvim/init.lua"); v.Tier != Ordinary {
		t.Errorf("in a project of that name every edit is %s: %s", v.Tier, v.Why)
	}
}
