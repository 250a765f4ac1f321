package policy

import "testing"

// TestSubcommandOptions checks that a deny rule such as "git push ..." also finds the subcommand after options. The
// value of an option, as in "git commit -m push", is not a subcommand.
func TestSubcommandOptions(t *testing.T) {
	everything := Rule{Effect: Allow}
	for _, test := range []struct {
		rule, command string
		want          Effect
	}{
		{"git push ...", "git -C . push origin main", Deny},
		{"git push ...", "git --no-pager -c a=b push", Deny},
		{"git push ...", "/usr/bin/git push", Deny},
		{"git push ...", "env git push", Deny},
		{"git push ...", "command git push", Deny},
		{"git push ...", "git -c alias.x=push x", Deny},
		{"git push ...", "git -c alias.x=y -c alias.y=push x", Deny},
		{"git push ...", "git config alias.p push", Deny},
		{"git push ...", `git pu\sh`, Deny},
		{"git push ...", "git -c alias.push=status push", Deny},
		{"git push ...", "/usr/lib/git-core/git-push o", Deny},
		{"git push ...", "git -c 'alias.x=!git push' x", Deny},
		{"docker run ...", "docker --context x run a", Deny},
		{"docker compose down ...", "docker-compose -f a down", Deny},
		{"docker compose down ...", "docker --context x compose -f x.yml down", Deny},
		{"kubectl delete ...", "kubectl -n x delete pod a", Deny},
		{"npm publish ...", "npm --prefix x publish", Deny},
		{"cargo publish ...", "cargo +nightly publish", Deny},
		{"gh pr merge ...", "gh -R o/r pr merge 3", Deny},
		{"gh pr merge ...", "gh pr -R o/r merge 3", Deny},
		{"terraform apply ...", "terraform -chdir=x apply", Deny},
		{"systemctl stop ...", "systemctl --user stop x", Deny},
		{"aws s3 rm ...", "aws --profile x s3 rm a", Deny},
		{"aws s3 rm ...", "aws --profile x s3 --region y rm a", Deny},
		{"make deploy ...", "make -C app deploy", Deny},
		{"make deploy ...", "make -j 4 CC=x deploy", Deny},
		{"make deploy ...", "make test deploy", Deny},
		{"make deploy ...", "make -k test A=b deploy", Deny},
		{"mvn deploy ...", "./mvn clean -q deploy", Deny},
		{"gradle publish ...", "gradle clean publish", Deny},
		{"pip install ...", "pip3 --isolated install x", Deny},
		{"pip install ...", "/usr/bin/pip3.11 install x", Deny},
		{"python ...", "python3 a.py", Deny},
		{"python2 ...", "python3 a.py", Allow},
		{"nix run ...", "nix --option a b --option c d run x", Deny},
		{"docker rm ...", "docker ps rm", Allow},
		{"redis-cli flushall ...", "redis-cli -h localhost flushall", Deny},
		{"git push ...", "git $X push", Ask},
		{"git push ...", `git -C "$D" push`, Deny},
		{"git push ...", "git ${OPTS} push origin", Ask},
		{"helm uninstall ...", "helm --kube-context prod -n x uninstall app", Deny},
		{"gcloud projects delete ...", "gcloud --project x projects --quiet delete y", Deny},
		{"git push ...", "g=git; $g push", Deny},
		{"git push ...", "xargs git push < x", Deny},
		{"git push ...", "git -C stash push", Deny},
		{"git push ...", "git stash push", Allow},
		{"git push ...", "git --no-pager stash push", Allow},
		{"git push ...", "git log push", Allow},
		{"npm publish ...", "npm --silent run publish", Allow},
		{"git push ...", "git commit -m push", Allow},
		{"docker rm ...", "docker run --rm x", Allow},
	} {
		d := policyOf(t, nil, deny(test.rule), everything, allow("npm ...")).Decide(execute(test.command), ModeAllow)
		if d.Effect != test.want {
			t.Errorf("denied %s: %s is %s: %s", test.rule, test.command, d.Effect, d.Why)
		}
	}
	for _, command := range []string{"git -C . status", "git --no-pager status", "/usr/bin/git status", "git-status"} {
		if d := policyOf(t, nil, allow("git status")).Decide(execute(command), ModeAsk); d.Effect != Ask {
			t.Errorf("a rule that allows git status allows %s", command)
		}
	}
}

// TestConstantSubstitutions checks that an allow rule accepts a command substitution with a constant result, such as a
// here document for cat. It does not accept a substitution that expands a variable, reads a file or runs another
// program.
func TestConstantSubstitutions(t *testing.T) {
	for _, test := range []struct {
		rule, command string
		want          Effect
	}{
		{"git commit -m *", "git commit -m \"$(cat <<'EOF'\nFix it\n\nSigned-off-by: A <a@b.c>\nEOF\n)\"", Allow},
		{"git commit -m *", "git commit -m \"$(cat <<\"EOF\"\nFix $it `rm x`\nEOF\n)\"", Allow},
		{"git commit ...", "git commit -m \"$(cat <<-'EOF'\n\tFix it's \"x\" (a) \\ $(ls)\n\tEOF\n)\" --no-verify",
			Allow},
		{"git commit -m *", "git commit -m \"$(cat <<EOF\nFix it\nEOF\n)\"", Allow},
		{"git commit -m *", "git commit -m \"$(cat <<EOF\nFix $X\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<EOF\nFix $(id)\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<EOF\nFix `id`\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<EOF\nFix \\$X $((1))\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<EOF\nFix \\$X\nEOF\n)\"", Allow},
		{"git commit -m *", "git commit -m \"$(cat x)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat x <<'EOF'\na\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<'EOF' > y\na\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<'EOF'\na\nEOF\nid)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<'EOF' | sh\na\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(sh <<'EOF'\na\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(/tmp/cat <<'EOF'\na\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(X=1 cat <<'EOF'\na\nEOF\n)\"", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<<'a b')\"", Allow},
		{"git commit -m *", "git commit -m \"$(cat <<<\"$X\")\"", Ask},
		{"git commit -m *", "git commit -m \"$(printf %s 'a b')\"", Allow},
		{"git commit -m *", "git commit -m \"$(printf '%s\\n' 'a b' c)\"", Allow},
		{"git commit -m *", "git commit -m \"$(printf -v x a)\"", Ask},
		{"git commit -m *", "git commit -m \"$(echo a b)\"", Allow},
		{"git commit -m *", "git commit -m \"$(echo *)\"", Ask},
		{"git commit -m *", "git commit -m \"$(echo $X)\"", Ask},
		{"git commit -m *", "git commit -m \"$(echo $(id))\"", Ask},
		{"git commit -m *", "git commit -m \"$(echo a; id)\"", Ask},
		{"git commit -m *", "git commit -m \"$(echo a > x)\"", Ask},
		{"git commit -m *", "git commit -m $'a\\nb'", Allow},
		{"git commit -m *", "git commit -m $(echo a --amend)", Ask},
		{"git commit -m *", "git commit -m \"$(cat <<'EOF'\nEOF\n)\"", Allow},
		{"git commit -m *", "git commit -m \"a $(cat <<'EOF'\nb\nEOF\n) c\" && git push", Ask},
		{"git commit -m *", "git add . && git commit -m \"$(cat <<'EOF'\nb\nEOF\n)\"", Ask},
		{"* -c *", "sh -c \"$(cat <<'EOF'\nrm -rf /\nEOF\n)\"", Deny},
		{"sh -c *", "sh -c \"$(cat <<'EOF'\nsudo id\nEOF\n)\"", Allow},
		{"git commit -m *", "git commit -m \"$(cat <<'EOF'\n$(rm -rf ~) `x` $HOME\nEOF\n)\"", Allow},
		{"gh pr create ...", "gh pr create --title a --body \"$(cat <<'EOF'\n## S\n- x\nEOF\n)\"", Allow},
		{"git commit ...", "cat() { id; }; git commit -m \"$(cat <<'EOF'\nb\nEOF\n)\"", Ask},
		{"git commit ...", "git commit -m \"$(<<'EOF' cat\nb\nEOF\n)\"", Allow},
		{"git commit ...", "git commit -F - <<'EOF'\nb\nEOF\n", Ask},
		{"git commit ...", "git commit -m \"`cat <<'EOF'\nb\nEOF\n`\"", Allow},
	} {
		if d := policyOf(t, nil, allow(test.rule)).Decide(execute(test.command), ModeAsk); d.Effect != test.want {
			t.Errorf("allowed %s: %q is %s: %s", test.rule, test.command, d.Effect, d.Why)
		}
	}
}
