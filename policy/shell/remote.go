package shell

import (
	"path"
	"slices"
	"strings"
)

// losses are the commands that take away what lies beyond the working tree: in clouds,
// clusters, containers, databases, registries and backups. Each is a list of words that
// follow each other among the operands; * in a word stands for any letters. A command
// without words always does.
var losses = map[string][]string{
	// Clusters.
	"kubectl":         {"delete", "drain", "cordon", "replace --force", "rollout undo", "taint"},
	"oc":              {"delete", "adm drain"},
	"k":               {"delete"},
	"helm":            {"delete", "uninstall", "rollback", "un", "del"},
	"helmfile":        {"destroy", "delete"},
	"eksctl":          {"delete"},
	"kops":            {"delete"},
	"kind":            {"delete"},
	"minikube":        {"delete"},
	"k3d":             {"cluster delete"},
	"nomad":           {"job stop", "stop", "system gc", "namespace delete"},
	"argocd":          {"delete"},
	"flux":            {"delete", "uninstall"},
	"istioctl":        {"uninstall"},
	"consul":          {"kv delete", "leave"},
	"vault":           {"delete", "destroy", "disable", "revoke", "kv delete", "kv destroy"},
	"etcdctl":         {"del", "defrag"},
	"rabbitmqctl":     {"reset", "delete_*", "force_reset", "purge_queue"},
	"kafka-topics":    {"--delete"},
	"kafka-topics.sh": {"--delete"},
	"velero":          {"delete"},
	"rancher":         {"delete", "rm"},
	"crossplane":      {"uninstall"},

	// Infrastructure.
	"terraform":  {"destroy", "apply -destroy", "apply --destroy", "state rm", "workspace delete", "force-unlock", "taint"},
	"tofu":       {"destroy", "apply -destroy", "state rm", "workspace delete", "force-unlock"},
	"terragrunt": {"destroy", "run-all destroy", "apply -destroy"},
	"pulumi":     {"destroy", "down", "stack rm", "state delete"},
	"cdk":        {"destroy"},
	"cdktf":      {"destroy"},
	"sam":        {"delete"},
	"serverless": {"remove"},
	"sls":        {"remove"},
	"eb":         {"terminate"},
	"copilot":    {"delete"},
	"amplify":    {"delete"},
	"sst":        {"remove"},
	"vagrant":    {"destroy", "box remove"},
	"virsh":      {"destroy", "undefine", "vol-delete", "pool-delete", "snapshot-delete"},
	"multipass":  {"delete", "purge"},
	"lxc":        {"delete"},
	"incus":      {"delete"},
	"vboxmanage": {"unregistervm", "closemedium"},
	"qm":         {"destroy"},
	"pct":        {"destroy"},
	"machinectl": {"remove", "poweroff", "terminate"},

	// Clouds.
	"aws":        {"delete-*", "terminate-*", "remove-*", "deregister-*", "purge-*", "rm", "rb", "mv", "batch-delete*", "--delete", "schedule-key-deletion", "cancel-*", "stop-instances", "reset-*", "detach-*", "disassociate-*", "release-address", "revoke-*", "destroy"},
	"gcloud":     {"delete", "remove-*", "destroy", "rm", "reset", "revoke", "stop"},
	"gsutil":     {"rm", "rb", "rsync -d", "mv"},
	"bq":         {"rm", "truncate"},
	"az":         {"delete", "purge", "remove", "delete-batch", "deallocate", "stop", "reset"},
	"azcopy":     {"remove", "rm"},
	"doctl":      {"delete", "rm", "d"},
	"linode-cli": {"delete", "rm"},
	"hcloud":     {"delete"},
	"ibmcloud":   {"delete", "*-delete", "rm"},
	"oci":        {"delete", "terminate", "bulk-delete"},
	"openstack":  {"delete"},
	"scw":        {"delete", "terminate"},
	"exo":        {"delete"},
	"heroku":     {"apps:destroy", "destroy", "pg:reset", "addons:destroy", "pg:kill*", "config:unset", "releases:rollback", "rollback"},
	"fly":        {"destroy", "delete"},
	"flyctl":     {"destroy", "delete"},
	"vercel":     {"rm", "remove", "rollback"},
	"netlify":    {"sites:delete", "env:unset"},
	"firebase":   {"*:delete", "firestore:delete", "hosting:disable"},
	"supabase":   {"db reset", "delete"},
	"railway":    {"delete", "down"},
	"render":     {"delete"},
	"wrangler":   {"delete", "rollback"},
	"cf":         {"delete", "delete-*"},
	"dokku":      {"apps:destroy", "*:destroy"},
	"s3cmd":      {"del", "rm", "rb", "--delete-removed", "expire"},
	"mc":         {"rm", "rb"},
	"b2":         {"delete-*", "rm"},
	"rclone":     {"delete", "purge", "deletefile", "rmdir", "rmdirs", "sync", "move", "cleanup"},
	"gh":         {"repo delete", "release delete", "run delete", "secret delete", "variable delete", "gist delete", "issue delete", "ssh-key delete", "repo archive", "label delete", "cache delete", "codespace delete", "-X DELETE", "--method DELETE", "project delete", "repo edit --visibility", "pr close --delete-branch"},
	"glab":       {"repo delete", "release delete", "variable delete", "-X DELETE", "issue delete", "mr delete"},
	"hub":        {"delete", "release delete"},

	// Containers.
	"docker":         {"volume rm", "volume remove", "volume prune", "system prune", "image prune", "container prune", "network prune", "builder prune", "compose down -v", "compose down --volumes", "swarm leave", "stack rm", "service rm", "secret rm", "config rm", "buildx prune"},
	"podman":         {"volume rm", "volume prune", "system prune", "system reset", "image prune", "container prune", "pod rm", "machine rm"},
	"nerdctl":        {"volume rm", "volume prune", "system prune"},
	"docker-compose": {"down -v", "down --volumes"},
	"podman-compose": {"down -v", "down --volumes"},
	"crictl":         {"rmp", "rmi --prune"},
	"ctr":            {"delete", "rm"},
	"wslconfig":      {"/u"},
	"colima":         {"delete"},
	"limactl":        {"delete"},

	// Databases and their tools; see also sqlPrograms.
	"dropdb":         nil,
	"dropuser":       nil,
	"mysqladmin":     {"drop", "shutdown", "kill"},
	"pg_resetwal":    nil,
	"pg_dropcluster": nil,
	"pg_ctlcluster":  {"stop"},
	"pg_restore":     {"-c", "--clean"},
	"redis-cli":      {"flushall", "flushdb", "del", "unlink", "shutdown", "script flush", "config set", "replicaof", "slaveof", "debug"},
	"valkey-cli":     {"flushall", "flushdb", "del", "unlink", "shutdown", "config set"},
	"mongorestore":   {"--drop"},
	"influx":         {"delete", "bucket delete"},
	"rails":          {"db:drop", "db:drop:*", "db:reset", "db:purge", "db:schema:load", "db:migrate:reset", "db:truncate_all", "db:rollback"},
	"rake":           {"db:drop", "db:drop:*", "db:reset", "db:purge", "db:schema:load", "db:migrate:reset"},
	"prisma":         {"migrate reset", "db push --force-reset"},
	"artisan":        {"migrate:fresh", "migrate:reset", "db:wipe", "migrate:refresh"},
	"manage.py":      {"flush", "reset_db", "sqlflush"},
	"django-admin":   {"flush", "reset_db"},
	"sequelize":      {"db:drop", "db:migrate:undo:all"},
	"sequelize-cli":  {"db:drop", "db:migrate:undo:all"},
	"typeorm":        {"schema:drop"},
	"knex":           {"migrate:rollback"},
	"mix":            {"ecto.drop", "ecto.reset"},
	"alembic":        {"downgrade"},
	"flyway":         {"clean"},
	"liquibase":      {"drop-all", "dropall", "rollback"},
	"diesel":         {"database reset", "database drop"},
	"sqlx":           {"database drop", "database reset"},
	"dbmate":         {"drop", "down", "rollback"},
	"goose":          {"reset", "down-to"},
	"migrate":        {"drop"},
	"drizzle-kit":    {"drop"},
	"curator":        {"delete_indices"},

	// Registries, from which a release is not taken back.
	"npm":    {"publish", "unpublish", "deprecate", "owner", "dist-tag rm", "access", "token revoke"},
	"pnpm":   {"publish"},
	"yarn":   {"publish", "npm publish"},
	"cargo":  {"publish", "yank", "owner"},
	"twine":  {"upload"},
	"gem":    {"push", "yank"},
	"poetry": {"publish"},
	"flit":   {"publish"},
	"hatch":  {"publish"},
	"uv":     {"publish"},
	"vsce":   {"publish", "unpublish"},
	"lerna":  {"publish"},
	"mvn":    {"deploy"},
	"dotnet": {"nuget push", "nuget delete"},

	// Backups and volumes.
	"restic":    {"forget", "prune"},
	"borg":      {"delete", "prune"},
	"duplicity": {"remove-*", "cleanup"},
	"zfs":       {"destroy", "rollback"},
	"btrfs":     {"subvolume delete"},
	"snapper":   {"delete", "rollback"},
	"timeshift": {"--delete", "--restore", "--delete-all"},
	"tmutil":    {"delete", "deletelocalsnapshots", "disable"},
	"lvreduce":  nil,
	"vgreduce":  nil,
	"lvremove":  nil,
	"vgremove":  nil,
	"pvremove":  nil,

	// Other keepers of changes.
	"svn":    {"revert", "delete http*"},
	"hg":     {"revert", "update -C", "update --clean", "up -C", "purge", "strip", "rollback", "co -C"},
	"jj":     {"abandon", "op restore"},
	"fossil": {"revert", "clean"},
	"bzr":    {"revert"},
	"p4":     {"revert", "obliterate"},
	"repo":   {"forall"},

	// Keys and mail.
	"gpg":         {"--delete-*"},
	"gpg2":        {"--delete-*"},
	"ssh-keygen":  {"-R"},
	"security":    {"delete-*"},
	"pass":        {"rm"},
	"ssh-copy-id": nil,
	"sendmail":    nil,
	"mail":        {"-s"},
	"mailx":       {"-s"},
	"mutt":        {"-s"},
}

// loss asks about a command that takes away what no tree holds. It says whether the
// program is one of which that is known.
func (w *walker) loss(name string, fs []field) bool {
	phrases, found := losses[name]
	if !found {
		return false
	}
	words := make([]string, 0, len(fs))
	for _, f := range fs[1:min(len(fs), 200)] {
		words = append(words, f.text)
	}
	if rehearsed(words) {
		return true
	}
	if phrases == nil {
		w.ask("takes away or sends what cannot be brought back: %s", shown(fs))
	}
	for _, phrase := range phrases {
		if inOrder(strings.Fields(phrase), words, name == "redis-cli" || name == "valkey-cli") {
			w.ask("takes away or sends what cannot be brought back: %s", shown(fs))
			return true
		}
	}
	return true
}

// rehearsed says whether the words ask for a rehearsal only, or for help.
func rehearsed(words []string) bool {
	if len(words) > 0 && words[len(words)-1] == "-h" {
		return true
	}
	return slices.ContainsFunc(words, func(word string) bool {
		switch word {
		case "--dry-run", "--dryrun", "--dry-run=client", "--dry-run=server", "--help", "--what-if", "--whatif", "--check", "--plan", "--no-op", "--version", "can-i":
			return true
		}
		return false
	})
}

// inOrder says whether the words of a phrase stand among words in this order. What
// stands between them may be options and their values. The first must be among the
// first operands, so that an argument far behind is no subcommand.
func inOrder(phrase, words []string, fold bool) bool {
	next, operands := 0, 0
	for _, word := range words {
		if fold {
			word = strings.ToLower(word)
		}
		if ok, err := path.Match(phrase[next], word); ok && err == nil {
			if next++; next == len(phrase) {
				return true
			}
			continue
		}
		if !strings.HasPrefix(word, "-") {
			if operands++; operands > 6 && !strings.HasPrefix(phrase[next], "-") {
				return false
			}
		}
	}
	return false
}
