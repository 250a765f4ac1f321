package shell

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// losses are the commands that take away what lies beyond the working tree: in clouds,
// clusters, containers, databases, registries and backups. Each is a list of words that
// follow each other among the operands; * in a word stands for any letters. A command
// without words always does.
var losses = named(func() map[string][]string {
	return map[string][]string{
		// Clusters.
		"kubectl": {"delete", "drain", "cordon", "replace --force", "rollout undo", "taint"},
		"oc":      {"delete", "adm drain"},
		"k eksctl kops kind minikube argocd velero": {"delete"},
		"helm":                         {"delete", "uninstall", "rollback", "un", "del"},
		"helmfile":                     {"destroy", "delete"},
		"k3d":                          {"cluster delete"},
		"nomad":                        {"job stop", "stop", "system gc", "namespace delete"},
		"flux":                         {"delete", "uninstall"},
		"istioctl crossplane":          {"uninstall"},
		"consul":                       {"kv delete", "leave"},
		"vault":                        {"delete", "destroy", "disable", "revoke", "kv delete", "kv destroy"},
		"etcdctl":                      {"del", "defrag"},
		"rabbitmqctl":                  {"reset", "delete_*", "force_reset", "purge_queue"},
		"kafka-topics kafka-topics.sh": {"--delete"},
		"rancher":                      {"delete", "rm"},

		// Infrastructure.
		"terraform":                     {"destroy", "apply -destroy", "apply --destroy", "state rm", "workspace delete", "force-unlock", "taint"},
		"tofu":                          {"destroy", "apply -destroy", "state rm", "workspace delete", "force-unlock"},
		"terragrunt":                    {"destroy", "run-all destroy", "apply -destroy"},
		"pulumi":                        {"destroy", "down", "stack rm", "state delete"},
		"cdk cdktf qm pct":              {"destroy"},
		"sam copilot amplify lxc incus": {"delete"},
		"serverless sls sst":            {"remove"},
		"eb":                            {"terminate"},
		"vagrant":                       {"destroy", "box remove"},
		"virsh":                         {"destroy", "undefine", "vol-delete", "pool-delete", "snapshot-delete"},
		"multipass":                     {"delete", "purge"},
		"vboxmanage":                    {"unregistervm", "closemedium"},
		"machinectl":                    {"remove", "poweroff", "terminate"},

		// Clouds.
		"aws":                         {"delete-*", "terminate-*", "remove-*", "deregister-*", "purge-*", "rm", "rb", "mv", "batch-delete*", "--delete", "schedule-key-deletion", "cancel-*", "stop-instances", "reset-*", "detach-*", "disassociate-*", "release-address", "revoke-*", "destroy"},
		"gcloud":                      {"delete", "remove-*", "destroy", "rm", "reset", "revoke", "stop"},
		"gsutil":                      {"rm", "rb", "rsync -d", "mv"},
		"bq":                          {"rm", "truncate"},
		"az":                          {"delete", "purge", "remove", "delete-batch", "deallocate", "stop", "reset"},
		"azcopy":                      {"remove", "rm"},
		"doctl":                       {"delete", "rm", "d"},
		"linode-cli":                  {"delete", "rm"},
		"hcloud openstack exo render": {"delete"},
		"ibmcloud":                    {"delete", "*-delete", "rm"},
		"oci":                         {"delete", "terminate", "bulk-delete"},
		"scw":                         {"delete", "terminate"},
		"heroku":                      {"apps:destroy", "destroy", "pg:reset", "addons:destroy", "pg:kill*", "config:unset", "releases:rollback", "rollback"},
		"fly flyctl":                  {"destroy", "delete"},
		"vercel":                      {"rm", "remove", "rollback"},
		"netlify":                     {"sites:delete", "env:unset"},
		"firebase":                    {"*:delete", "firestore:delete", "hosting:disable"},
		"supabase":                    {"db reset", "delete"},
		"railway":                     {"delete", "down"},
		"wrangler":                    {"delete", "rollback"},
		"cf":                          {"delete", "delete-*"},
		"dokku":                       {"apps:destroy", "*:destroy"},
		"s3cmd":                       {"del", "rm", "rb", "--delete-removed", "expire"},
		"mc":                          {"rm", "rb"},
		"b2":                          {"delete-*", "rm"},
		"rclone":                      {"delete", "purge", "deletefile", "rmdir", "rmdirs", "sync", "move", "cleanup"},
		"gh":                          {"repo delete", "release delete", "run delete", "secret delete", "variable delete", "gist delete", "issue delete", "ssh-key delete", "repo archive", "label delete", "cache delete", "codespace delete", "-X DELETE", "--method DELETE", "project delete", "repo edit --visibility", "pr close --delete-branch"},
		"glab":                        {"repo delete", "release delete", "variable delete", "-X DELETE", "issue delete", "mr delete"},
		"hub":                         {"delete", "release delete"},

		// Containers.
		"docker":                        {"volume rm", "volume remove", "volume prune", "system prune", "image prune", "container prune", "network prune", "builder prune", "compose down -v", "compose down --volumes", "swarm leave", "stack rm", "service rm", "secret rm", "config rm", "buildx prune"},
		"podman":                        {"volume rm", "volume prune", "system prune", "system reset", "image prune", "container prune", "pod rm", "machine rm"},
		"nerdctl":                       {"volume rm", "volume prune", "system prune"},
		"docker-compose podman-compose": {"down -v", "down --volumes"},
		"crictl":                        {"rmp", "rmi --prune"},
		"ctr":                           {"delete", "rm"},
		"wslconfig":                     {"/u"},
		"colima limactl":                {"delete"},

		// Databases and their tools; see also sqlPrograms.
		"dropdb dropuser pg_resetwal pg_dropcluster": nil,
		"mysqladmin":              {"drop", "shutdown", "kill"},
		"pg_ctlcluster":           {"stop"},
		"pg_restore":              {"-c", "--clean"},
		"redis-cli":               {"flushall", "flushdb", "del", "unlink", "shutdown", "script flush", "config set", "replicaof", "slaveof", "debug"},
		"valkey-cli":              {"flushall", "flushdb", "del", "unlink", "shutdown", "config set"},
		"mongorestore":            {"--drop"},
		"influx":                  {"delete", "bucket delete"},
		"rails":                   {"db:drop", "db:drop:*", "db:reset", "db:purge", "db:schema:load", "db:migrate:reset", "db:truncate_all", "db:rollback"},
		"rake":                    {"db:drop", "db:drop:*", "db:reset", "db:purge", "db:schema:load", "db:migrate:reset"},
		"prisma":                  {"migrate reset", "db push --force-reset"},
		"artisan":                 {"migrate:fresh", "migrate:reset", "db:wipe", "migrate:refresh"},
		"manage.py":               {"flush", "reset_db", "sqlflush"},
		"django-admin":            {"flush", "reset_db"},
		"sequelize sequelize-cli": {"db:drop", "db:migrate:undo:all"},
		"typeorm":                 {"schema:drop"},
		"knex":                    {"migrate:rollback"},
		"mix":                     {"ecto.drop", "ecto.reset"},
		"alembic":                 {"downgrade"},
		"flyway":                  {"clean"},
		"liquibase":               {"drop-all", "dropall", "rollback"},
		"diesel":                  {"database reset", "database drop"},
		"sqlx":                    {"database drop", "database reset"},
		"dbmate":                  {"drop", "down", "rollback"},
		"goose":                   {"reset", "down-to"},
		"migrate drizzle-kit":     {"drop"},
		"curator":                 {"delete_indices"},

		// Registries, from which a release is not taken back.
		"npm":                             {"publish", "unpublish", "deprecate", "owner", "dist-tag rm", "access", "token revoke"},
		"pnpm poetry flit hatch uv lerna": {"publish"},
		"yarn":                            {"publish", "npm publish"},
		"cargo":                           {"publish", "yank", "owner"},
		"twine":                           {"upload"},
		"gem":                             {"push", "yank"},
		"vsce":                            {"publish", "unpublish"},
		"mvn":                             {"deploy"},
		"dotnet":                          {"nuget push", "nuget delete"},

		// Backups and volumes.
		"restic":    {"forget", "prune"},
		"borg":      {"delete", "prune"},
		"duplicity": {"remove-*", "cleanup"},
		"zfs":       {"destroy", "rollback"},
		"btrfs":     {"subvolume delete"},
		"snapper":   {"delete", "rollback"},
		"timeshift": {"--delete", "--restore", "--delete-all"},
		"tmutil":    {"delete", "deletelocalsnapshots", "disable"},
		"lvreduce vgreduce lvremove vgremove pvremove": nil,

		// Other keepers of changes.
		"svn":    {"revert", "delete http*"},
		"hg":     {"revert", "update -C", "update --clean", "up -C", "purge", "strip", "rollback", "co -C"},
		"jj":     {"abandon", "op restore"},
		"fossil": {"revert", "clean"},
		"bzr":    {"revert"},
		"p4":     {"revert", "obliterate"},
		"repo":   {"forall"},

		// Keys and mail.
		"gpg gpg2":             {"--delete-*"},
		"ssh-keygen":           {"-R"},
		"security":             {"delete-*"},
		"pass":                 {"rm"},
		"ssh-copy-id sendmail": nil,
		"mail mailx mutt":      {"-s"},
	}
})

// loss asks about a command that takes away what no tree holds.
func (w *walker) loss(name string, fs []field) {
	phrases, found := losses()[name]
	words := make([]string, 0, len(fs))
	for _, f := range fs[1:min(len(fs), 200)] {
		words = append(words, f.text)
	}
	if !found || slices.ContainsFunc(words, func(word string) bool { return slices.Contains(rehearsals, word) }) ||
		len(words) > 0 && words[len(words)-1] == "-h" {
		return
	}
	fold := name == "redis-cli" || name == "valkey-cli"
	if phrases == nil || slices.ContainsFunc(phrases, func(phrase string) bool { return inOrder(strings.Fields(phrase), words, fold) }) {
		w.ask("takes away or sends what cannot be brought back: %s", shown(fs))
	}
}

// rehearsals are words that ask for a rehearsal only, or for help.
var rehearsals = []string{
	"--dry-run", "--dryrun", "--dry-run=client", "--dry-run=server", "--help", "--what-if", "--whatif", "--check", "--plan", "--no-op", "--version", "can-i",
}

// inOrder says whether the words of a phrase stand among words in this order. What
// stands between them may be options and their values. The first must be among the
// first operands, so that a later argument is no subcommand.
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

// A client is a program that hands statements to a database.
type client struct {
	valued string   // its options that take a value
	text   []string // those whose value is statements
	from   int      // the operand at which statements begin; 0 if none does
}

var clients = sync.OnceValue(func() map[string]client {
	return map[string]client{
		"psql":  {valued: "cdfhpUvoLPFRT --command --dbname --file --host --port --username --set --output", text: []string{"-c", "--command"}},
		"mysql": {valued: "ehuPDS --execute --host --user --database --port", text: []string{"-e", "--execute"}}, "mariadb": {valued: "ehuPDS --execute --host --user --database --port", text: []string{"-e", "--execute"}},
		"sqlite3": {from: 1}, "sqlite": {from: 1}, "duckdb": {valued: "c", text: []string{"-c", "--command"}, from: 1},
		"mongo": {valued: "upE --eval --host --port", text: []string{"--eval"}}, "mongosh": {valued: "upE --eval --host --port", text: []string{"--eval"}},
		"cqlsh": {valued: "euk --execute", text: []string{"-e", "--execute"}}, "clickhouse-client": {valued: "qhu --query --host", text: []string{"-q", "--query", "--multiquery"}}, "clickhouse": {valued: "qhu --query --host", text: []string{"-q", "--query"}},
		"sqlcmd": {valued: "QqSUPd", text: []string{"-Q", "-q"}}, "bq": {from: 1}, "snowsql": {valued: "qacu --query", text: []string{"-q", "--query"}}, "cockroach": {valued: "eu --execute", text: []string{"-e", "--execute"}},
		"isql": {}, "sqlplus": {from: 1}, "turso": {from: 3}, "usql": {valued: "c", text: []string{"-c"}}, "pgcli": {}, "influx": {valued: "e", text: []string{"-execute", "--execute"}}, "wrangler": {text: []string{"--command"}, valued: "--command"},
		"redis-cli": {}, "mycli": {valued: "e", text: []string{"-e"}}, "litecli": {valued: "e", text: []string{"-e"}}, "trino": {valued: "--execute", text: []string{"--execute"}}, "hive": {valued: "e", text: []string{"-e"}}, "beeline": {valued: "e", text: []string{"-e"}}, "spark-sql": {valued: "e", text: []string{"-e"}},
	}
})

// statements are what takes data away: SQL, and what document stores say instead.
var statements = lazily(`(?is)\b(drop|truncate)\s+(table|database|schema|index|view|column|user|role|keyspace|if\b|materialized|type|function|trigger|sequence|owned|\w+)|` +
	`\bdelete\s+from\b|\bdelete\s+\w+\s+where\b|\balter\s+table\s+\S+\s+drop\b|\bupdate\s+\S+\s+set\b|\bdropDatabase\b|\.(drop|remove|deleteMany|deleteOne|dropIndex|dropIndexes|findOneAndDelete|dropUser|updateMany)\s*\(|` +
	`\b(flushall|flushdb)\b|\bcopy\s+.*\bto\s+program\b|\blo_(export|unlink)\b|\breplace\s+into\b|\bload_extension\b|\bwritefile\s*\(|\binto\s+(outfile|dumpfile)\b|\bpg_terminate_backend\b|\bshutdownServer\b|\breset\s+master\b|\bvacuum\s+into\b`)

// sqlComments stand between words that belong together.
var sqlComments = lazily(`(?s)/\*(?:[^!].*?)??\*/|--[^\n]*`)

// sqlStrings are text, unless a statement is built of them.
var (
	sqlStrings = lazily(`'(?:[^']|'')*'`)
	builds     = lazily(`(?i)\b(execute|do|prepare|exec|eval|from\s+program|format|concat)\b`)
)

// shellEscapes are how the clients hand a line to a shell.
var shellEscapes = lazily(`(?m)(?:^|[;\s])(?:\\!|\.shell|\.system|\\system|system|!)\s+([^\n;]+)|\.once\s+\|\s*([^\n]+)|\.output\s+\|\s*([^\n]+)|\\[go]\s*\|\s*([^\n]+)`)

// database judges the statements that are handed to a database on the command line, or
// in a text that is known.
func (w *walker) database(name string, fs []field, st *state, in flow) {
	c, found := clients()[name]
	if !found {
		return
	}
	opts, operands := options(fs[1:], c.valued, false)
	texts := values(opts, c.text...)
	if c.from > 0 && len(operands) > c.from {
		texts = append(texts, operands[c.from:]...)
	}
	if name == "sqlite3" {
		texts = append(texts, valuesOf(fs, []string{"-cmd"})...)
	}
	if in.piped && in.known {
		texts = append(texts, literal(in.text))
	}
	changes := false
	for _, f := range texts {
		changes = w.statement(f, fs, st) || changes || !reads(f.text)
	}
	if changes && len(operands) > 0 && (name == "sqlite3" || name == "sqlite" || name == "duckdb") {
		w.write(operands[0], st, shown(fs))
	}
}

// statement judges one text for a database. It says whether it takes something away.
func (w *walker) statement(f field, fs []field, st *state) bool {
	text := sqlComments().ReplaceAllString(f.text, " ")
	for _, m := range shellEscapes().FindAllStringSubmatch(f.text, 16) {
		w.ask("hands a line to a shell: %s", shown(fs))
		w.nested(strings.Join(m[1:], ""), f, st.child(nil), flow{})
	}
	if !builds().MatchString(text) {
		text = sqlStrings().ReplaceAllString(text, "''")
	}
	if statements().MatchString(text) {
		w.ask("takes data out of a database: %s", shown(fs))
		return true
	}
	return false
}

var readers = []string{"select", "explain", "pragma", "show", "describe", "desc", ".tables", ".schema", ".headers", ".mode", ".dump", ".databases", ".indexes", ".fullschema", "with", "values", "\\d", "\\dt", "\\l"}

// reads says whether statements begin like ones that only read.
func reads(text string) bool {
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(strings.ToLower(part))
		if len(words) > 0 && !slices.Contains(readers, words[0]) {
			return false
		}
	}
	return true
}
