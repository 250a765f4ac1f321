package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// language describes the language of an interpreter. words matches code that writes, deletes, starts processes, opens
// the network, or may hide such an action. Code without such words is ordinary, like a script on disk.
type language struct {
	code   []string // options and subcommands that take code
	valued string   // options that take a value, in the notation of the function options
	words  func() *regexp.Regexp
}

var (
	pythonWords = lazily(`\b(os\.(remove|unlink|rmdir|removedirs|rename|renames|replace|system|popen|exec\w*|` +
		`spawn\w*|posix_spawn\w*|kill|killpg|chmod|chown|symlink|link|mkfifo|truncate|startfile|fork|setuid|open|` +
		`write)|` +
		`shutil\.(rmtree|move|copy\w*|make_archive|unpack_archive|chown)|from\s+shutil\s+import|` +
		`import\s+shutil\s+as|subprocess|pexpect|pty|socket|urllib|urllib2|urllib3|requests|httpx|aiohttp|` +
		`ftplib|smtplib|telnetlib|paramiko|fabric|boto3|http\.client|http\.server|ctypes|cffi|multiprocessing|` +
		`webbrowser|` +
		`write_text|write_bytes|rmtree|unlink|rmdir|touch\(|eval|exec|execfile|__import__|importlib|compile|` +
		`getattr|b64decode|fromhex|marshal|pickle|runpy|unlink|remove\(['"]/|truncate|mmap|fcntl|send2trash|` +
		`sh\.|plumbum|asyncio\.create_subprocess\w*|to_csv|to_json|to_excel|savefig|writelines|` +
		`from\s+os\s+import|import\s+os\s+as|psycopg2?|pymysql|sqlite3)\b|` +
		`\.write\s*\(|\bopen\s*\([^)]*,\s*(mode\s*=\s*)?[bru]*['"][rb]*[waxWAX+]|\bopen\s*\([^)]*\+['"]|` +
		`\bdump\s*\([^()]*,\s*open|\bsystem\s*\(|\bPath\([^)]*\)\.(rename|replace|chmod|symlink_to|hardlink_to|` +
		`open)|__\w+__\s*\[|print\s*\(.*file\s*=\s*open`)
	nodeWords = lazily(`\b(writeFile\w*|appendFile\w*|createWriteStream|writeSync|rm|rmSync|rmdir\w*|unlink\w*|` +
		`rename(Sync)?|copyFile\w*|cpSync|truncate\w*|ftruncate\w*|symlink\w*|linkSync|chmod\w*|chown\w*|` +
		`mkdtemp\w*|openSync|outputFile\w*|removeSync|emptyDir\w*|` +
		`child_process|exec|execSync|execFile\w*|spawn|spawnSync|fork|worker_threads|cluster|process\.(kill|` +
		`binding|dlopen|chdir|setuid)|https?|net|dgram|tls|http2|fetch|axios|WebSocket|XMLHttpRequest|undici|got|` +
		`eval|Function|vm|atob|fromCharCode|import\s*\(|dlopen|Bun\.(write|spawn\w*|file|serve|connect|\$)|\$` + "`" +
		`|fsPromises|shelljs|execa|zx|rimraf|Deno\.(write\w*|remove\w*|rename\w*|copyFile\w*|truncate\w*|` +
		`symlink\w*|chmod\w*|chown\w*|run|Command|connect\w*|listen\w*|serve|open\w*|create\w*|kill|dlopen|` +
		`exit|mkdir))\b|\[['"]\w+['"]\s*\+|require\s*\(\s*[^'"\s]`)
	perlWords = lazily(`\b(system|exec|unlink|rmdir|rename|fork|kill|chmod|chown|symlink|link|truncate|socket|` +
		`connect|qx|eval|require|syswrite|sysopen|ioctl|syscall|binmode|File::\w+|IO::\w+|LWP|HTTP::\w+|Net::\w+|` +
		`remove_tree|rmtree|pack|unpack|mkdir|utime|dbmopen|open3?|do\s*['"(])\b|` + "`" +
		`|\bopen\b[^;]*['"]\s*(\+?[>|]|.*\|\s*['"])|<[^>]*\|>|\|-|-\|`)
	rubyWords = lazily(`\b(system|exec|spawn|fork|File\.(write|delete|unlink|rename|chmod|chown|symlink|link|` +
		`truncate|open|new|binwrite)|IO\.(write|popen|binwrite|sysopen)|FileUtils|Dir\.(rmdir|delete|unlink|mkdir)|` +
		`Pathname|Open3|PTY|Process|Net|Socket|TCPSocket|UDPSocket|URI|OpenURI|open|eval|instance_eval|class_eval|` +
		`send|__send__|public_send|Kernel|Fiddle|syscall|ioctl|` +
		`write|rm_rf|rm_r|remove_dir|unlink|load|pack|unpack1?|Excon|Faraday|HTTParty|require\s*['"](open-uri|net|` +
		`socket|fileutils|open3|pty))\b|` + "`" + `|%x`)
	phpWords = lazily(`(?i)\b(unlink|rmdir|rename|copy|file_put_contents|fwrite|fputs|fopen|touch|mkdir|symlink|` +
		`link|chmod|chown|chgrp|exec|shell_exec|system|passthru|popen|proc_open|pcntl_\w+|curl_\w+|fsockopen|` +
		`stream_socket_\w+|socket_\w+|file_get_contents\s*\(\s*['"]\w+:|mail|eval|assert|create_function|` +
		`call_user_func\w*|base64_decode|dl|(include|require)(_once)?(\s+['"$]|\s*\()|ftp_\w+|posix_kill|tempnam|` +
		`move_uploaded_file|PDO|mysqli|Artisan)\b|file_get_contents\s*\(\s*['"]\w+:|` + "`")
	luaWords = lazily(`\b(os\.(execute|remove|rename|exit|tmpname)|io\.(popen|open|output|write)|load|` +
		`loadstring|loadfile|dofile|require|package|socket|lfs|vim\.(fn|cmd|api|loop|uv|system))\b|\bos\s*\[|\bio\s*\[`)
	rWords = lazily(`\b(system2?|unlink|file\.(remove|rename|copy|create|symlink|append)|write\w*|saveRDS|` +
		`save|sink|dump|download\.file|url|socketConnection|pipe|shell|eval|parse|source|install\.packages|` +
		`cat\s*\([^)]*file|Sys\.(chmod|setenv|kill)|rm\s*\(\s*list)\b`)
	juliaWords = lazily("\\b(run|rm|mv|cp|write|open|download|connect|listen|touch|mkdir|mkpath|chmod|symlink|" +
		"ccall|eval|include|HTTP|pipeline|spawn)\\s*[(.!]|`")
	appleWords = lazily(`(?i)\b(do\s+shell\s+script|delete|quit|keystroke|key\s+code|system\s+events|shut\s*down|` +
		`restart|log\s+out|empty|move|duplicate|make\s+new|set\s+volume|open\s+location|write|eof|load\s+script|` +
		`run\s+script|send|ObjC|NSTask|app\.doShellScript)\b`)
	elixirWords = lazily(`\b(File\.(rm\w*|write\w*|rename|cp\w*|ln_s|touch|mkdir\w*|chmod|chown)|System\.(cmd|` +
		`shell|halt|stop|put_env)|Port|:os|:httpc|:gen_tcp|:file|HTTPoison|Req|Code|Mix\.Task|Ecto|Repo\.delete\w*)\b`)
	groovyWords = lazily(`\b(execute|ProcessBuilder|Runtime|delete\w*|write|withWriter|append|toURL|Socket|URL|` +
		`newOutputStream|renameTo|eval|Eval|GroovyShell|System\.exit)\b|<<|["')]\s*\.!`)
	tclWords   = lazily(`\b(exec|spawn|send|file\s+(delete|rename|copy|mkdir)|open|socket|eval|source|load)\b`)
	otherWords = lazily(`(?i)(\b|_)(system|exec\w*|shell\w*|sh|spawn\w*|popen|process\w*|\w*command|` +
		`readProcess\w*|cmd|run\w*|rm\w*|del|delete\w*|remove\w*|unlink\w*|rename\w*|write\w*|append\w*|create\w*|` +
		`mkdir\w*|copy\w*|move\w*|chmod\w*|spit|` +
		`save\w*|fopen|open\w*|socket\w*|connect\w*|https?|url\w*|fetch\w*|download\w*|load\w*|eval\w*|cmdline|` +
		`runtime|halt|kill\w*|os:\w+|file:\w+)\b|!`)
	lispWords = lazily(`(?i)\b(shell-command\w*|call-process\w*|start-process\w*|delete-\w+|write-\w+|` +
		`append-to-file|rename-file|make-network-process|url-\w+|eval|load|save-buffer|kill-emacs|shell|system|` +
		`run-program|uiop|sh)\b`)
)

// languages maps the names of interpreters to their languages.
var languages = sync.OnceValue(func() map[string]language {
	python := language{[]string{"-c"}, "cmWX", pythonWords}
	node := language{[]string{"-e", "--eval", "-p", "--print", "-pe"}, "epr --eval --print --require --import",
		nodeWords}
	ruby := language{[]string{"-e"}, "erICEx", rubyWords}
	return map[string]language{
		"python": python, "python2": python, "python3": python,
		"pypy": python, "pypy3": python, "ipython": python, "ipython3": python, "bpython": python,
		"node": node, "nodejs": node, "bun": {[]string{"-e", "--eval", "-p", "--print"}, "ep --eval --print",
			nodeWords}, "deno": {[]string{"eval", "repl", "-e"}, "", nodeWords},
		"ts-node": node, "tsx": node, "perl": {[]string{"-e", "-E"}, "eEIMmxF", perlWords}, "raku": {[]string{"-e"},
			"eI", perlWords}, "ruby": ruby, "irb": ruby, "jruby": ruby,
		"php": {[]string{"-r", "-B", "-R", "-E", "--run"}, "rBREcdf --run", phpWords}, "lua": {[]string{"-e"}, "el",
			luaWords}, "luajit": {[]string{"-e"}, "el", luaWords},
		"rscript": {[]string{"-e"}, "e", rWords}, "r": {[]string{"-e"}, "ef",
			rWords}, "julia": {[]string{"-e", "-E", "--eval", "--print"}, "eELpJ --eval --print", juliaWords},
		"osascript": {[]string{"-e"}, "el", appleWords},
		"elixir":    {[]string{"-e", "--eval", "--rpc-eval"}, "erS --eval", elixirWords},
		"groovy": {[]string{"-e"}, "e",
			groovyWords}, "tclsh": {nil, "", tclWords}, "expect": {[]string{"-c"}, "cf", tclWords},
		"emacs": {[]string{"--eval", "-eval", "--execute", "-f"}, "flL --eval --execute --load",
			lispWords}, "guile": {[]string{"-c"}, "celL", lispWords},
		"sbcl": {[]string{"--eval"}, "--eval --load", lispWords}, "scala": {[]string{"-e"}, "e", groovyWords},
		"jshell": {nil, "", groovyWords},
		"pwsh":   {}, "powershell": {}, "cmd": {},
	}
})

// languageOf returns the language of an interpreter. A name such as python3.12 counts as python.
func languageOf(name string) (language, bool) {
	if strings.HasPrefix(name, "python3.") || strings.HasPrefix(name, "python2.") {
		name = "python"
	}
	l, ok := languages()[name]
	return l, ok
}

// judgeInterpreter judges an interpreter of a language that this package cannot parse, such as Python.
func (w *walker) judgeInterpreter(name string, fs []field, st *state, in flow) {
	l, _ := languageOf(name)
	if l.words == nil {
		w.judgeUnreadable(fs, st)
		return
	}
	if name == "deno" {
		w.denoTask(fs, st)
	}
	codes, inPlace := w.inlineCode(l, fs)
	for _, code := range codes {
		w.judgeCode(code, l, fs)
	}
	opts, operands := options(fs[1:], l.valued, true)
	if len(operands) > 0 {
		w.judgeRemoteLoss(path.Base(operands[0].text), operands)
		w.codeWords(path.Base(operands[0].text), fs)
	} else if o, ok := findOption(opts, "-m"); ok && o.value != nil {
		w.judgeRemoteLoss(o.value.text, fs)
	}
	w.judgeModule(l, fs, st, in)
	if len(codes) == 0 {
		w.judgeStarted(operands, fs, st, in)
	}
	if (name == "deno" || name == "bun") && slices.ContainsFunc(operands[:min(4, len(operands))], isRemoteURL) {
		w.askUnknown(whyRunsDownload, shown(fs))
	}
	for _, f := range fs[1:] {
		if w.originOf(f, st).is(foreign) {
			w.askUnknown(whyRunsDownload, shown(fs))
		}
	}
	if inPlace {
		_, files := options(fs[1:], l.valued, false)
		w.judgeWrites(files, st, deedEdits)
	}
	if len(codes) > 0 {
		return
	}
	w.suffixesOf(fs, st, in)
	module := slices.ContainsFunc(fs[1:], func(f field) bool { return strings.HasPrefix(f.text, "-m") })
	if len(operands) > 0 && !module {
		w.startsModule(operands[0], fs, st, func(text field) { w.judgeCode(text, l, fs) })
	}
	if !module || len(operands) > 0 {
		w.judgeScript(l, fs, operands, module, in)
	}
}

// judgeUnreadable asks about code in a language for which this package has no list of dangerous words, such as the
// language of pwsh. It refuses a word that would be refused as a command.
func (w *walker) judgeUnreadable(fs []field, st *state) {
	w.askUnknown(whyUnknownLanguage, shown(fs))
	for _, f := range fs[1:] {
		w.ifRefused(*part(f, strings.ReplaceAll(f.text, `\`, "/")), st)
	}
}

// denoTask judges the values of deno task --eval, which are scripts for a shell.
func (w *walker) denoTask(fs []field, st *state) {
	if len(fs) < 2 || fs[1].text != "task" {
		return
	}
	for i, f := range fs[:len(fs)-1] {
		if f.text == "--eval" {
			w.walkNested(fs[i+1].text, fs[i+1], st.child(nil), flow{})
		}
	}
}

// isRemoteURL reports whether a word is an address on another machine.
func isRemoteURL(f field) bool { return isURL(f.text) && !local(f) }

// judgeStarted asks about a script that lies outside the working directory. For an operand npm:NAME of deno, it judges
// NAME as a program.
func (w *walker) judgeStarted(operands, fs []field, st *state, in flow) {
	for i, f := range operands {
		if name, ok := strings.CutPrefix(f.text, "npm:"); ok {
			name, _, _ = strings.Cut(name, "@")
			w.packages++
			w.judgeWords(append([]field{literal(name)}, operands[i+1:]...), st.clone(), in)
			w.packages--
			return
		}
	}
	if len(operands) == 0 || !strings.Contains(operands[0].text, "/") || isURL(operands[0].text) {
		return
	}
	if w.strange(operands[0], st) {
		w.askBecause(whyOuterScript, shown(fs))
	}
}

// judgeModule judges python -m NAME as the program NAME.
func (w *walker) judgeModule(l language, fs []field, st *state, in flow) {
	for i, f := range fs {
		if name, glued := strings.CutPrefix(f.text, "-m"); glued && name != "" && slices.Contains(l.code, "-c") {
			fs = slices.Insert(slices.Clone(fs), i, literal("-m"))
			fs[i+1] = *part(f, name)
			break
		}
	}
	at := slices.IndexFunc(fs, func(f field) bool { return f.text == "-m" })
	if !slices.Contains(l.code, "-c") || at < 0 || at+1 >= len(fs) ||
		slices.ContainsFunc(fs[1:at], func(f field) bool { return !strings.HasPrefix(f.text, "-") }) {
		return
	}
	if fs[at+1].text == "timeit" {
		for _, f := range fs[at+2:] {
			w.judgeCode(f, l, fs)
		}
	}
	w.startsModule(*part(fs[at+1], strings.ReplaceAll(fs[at+1].text, ".", "/")), fs, st, nil)
	w.packages++
	w.judgeWords(fs[at+1:], st.clone(), in)
	w.packages--
}

// judgeScript judges a script that an interpreter reads from its standard input or from <(…). It also asks about a
// script file that may be a download with an unknown name.
func (w *walker) judgeScript(l language, fs, operands []field, module bool, in flow) {
	script := literal("-")
	if len(operands) > 0 {
		script = operands[0]
	}
	code, ok := handed(script, in)
	switch {
	case len(operands) > 0 && w.unnamed.is(foreign) && !module:
		w.askUnknown(whyRunsDownload, shown(fs))
	case script.out == nil && (!in.piped || !isStdin(script.text)):
	case code.origin.is(foreign):
		w.askUnknown(whyRunsDownload, shown(fs))
	case code.origin.is(altered):
		w.askUnknown(whyRunsChangedCode, shown(fs))
	case ok:
		w.judgeCode(code, l, fs)
	}
}

// inlineCode returns the code in an interpreter's options, such as python -c CODE. inPlace says that the interpreter
// edits its operands in place, as perl -i does.
func (w *walker) inlineCode(l language, fs []field) (codes []field, inPlace bool) {
	for i := 1; i < len(fs); i++ {
		text := fs[i].text
		name, value, has := strings.Cut(text, "=")
		switch {
		case strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && len(text) > 1:
			letters, code := clustered(l, text)
			inPlace = inPlace || strings.Contains(letters, "i") &&
				(slices.Contains(l.code, "-E") || slices.Contains(l.code, "-e") && strings.Contains(l.valued, "C"))
			if code < 0 && !slices.Contains(l.code, text) {
				continue
			}
			if code >= 0 && code+1 < len(text) && !slices.Contains(l.code, text) {
				codes = append(codes, *part(fs[i], text[code+1:]))
			} else if i+1 < len(fs) {
				i++
				codes = append(codes, fs[i])
			}
		case slices.Contains(l.code, text) && i+1 < len(fs):
			i++
			codes = append(codes, fs[i])
		case has && slices.Contains(l.code, name):
			codes = append(codes, *part(fs[i], value))
		case !strings.HasPrefix(text, "-") && !slices.Contains(l.code, text):
			return codes, inPlace // the first operand is a script or a file
		}
	}
	return codes, inPlace
}

// clustered reads a word with several short options, such as -lane in perl -lane CODE. The result "code" is the index
// of the option that takes code, or -1. The result "letters" has the options before it.
func clustered(l language, text string) (letters string, code int) {
	for i := 1; i < len(text); i++ {
		c := text[i : i+1]
		if slices.Contains(l.code, "-"+c) {
			return text[1:i], i
		}
		if strings.Contains(l.valued, c) && !strings.HasPrefix(l.valued, "-") {
			return text[1:i], -1
		}
	}
	return text[1:], -1
}

// printing matches the calls with which code writes to the standard output or error, such as sys.stdout.write.
var printing = lazily(`(?i)(\b(sys|process|io)\.|\$)?\bstd(out|err)(\.buffer)?[.:](write|puts|print)\w*`)

// startedTexts matches calls with which code starts a command, such as system("ls"). Its groups are the text of the
// command.
var startedTexts = lazily(`(?:system|popen|exec|spawn|run|call|check_call|check_output|Popen|passthru|execute|cmd|` +
	`shell|script|Command|sh|qx|%x)\w*\s*[({]?\s*(?:"([^"]*)"|'([^']*)'|` + "`([^`]*)`" + `)|^` + "`([^`]*)`" +
	`|spawn\s+([^\n;]+)`)

// codeWords judges code that follows a certain word of a program, such as the code after the word runner in rails
// runner CODE.
func (w *walker) codeWords(name string, fs []field) {
	words, found := codeWords(name)
	if !found {
		return
	}
	l, ok := languageOf(words[0])
	if !ok {
		l.words = otherWords
	}
	for i, f := range fs[1:] {
		word, value, has := strings.Cut(f.text, "=")
		rest := fs[i+2:]
		switch {
		case has && slices.Contains(words[1:], word):
			rest = append([]field{*part(f, value)}, rest...)
		case len(f.text) > 5 && slices.ContainsFunc(words[1:],
			func(word string) bool { return strings.HasPrefix(f.text, word+" ") }):
			rest = fs[i+1:]
		case !slices.Contains(words[1:], f.text):
			continue
		}
		for _, code := range rest {
			w.judgeCode(code, l, fs)
		}
		return
	}
}

// codeWords returns the row of a program in the part codeWords: a language, and the words after which the program takes
// code in this language.
var codeWords = table("codeWords", strings.Fields)

// judgeCode asks about code in another language if the code has a dangerous word of this language. It refuses code that
// names Perlica's folder, and code that starts a refused command.
func (w *walker) judgeCode(f field, l language, fs []field) {
	text := f.text
	if f.vague {
		text = strings.ReplaceAll(text, unknownText, " ")
	}
	if f.vague && strings.TrimSpace(text) == "" {
		w.askUnknown(whyUnknownCode, shown(fs))
		return
	}
	found := l.words().FindString(printing().ReplaceAllString(text, "print"))
	if found == "" {
		return
	}
	if strings.Contains(strings.ToLower(text), ".perlica_config") {
		w.addFinding(Refused, whyTouchesOwn.With(shown(fs)), "perlica")
	}
	w.refusedOnly++
	for _, m := range startedTexts().FindAllStringSubmatch(text, 32) {
		w.walkNested(strings.Join(m[1:], ""), f, newState(w.place.Dir), flow{})
	}
	w.refusedOnly--
	w.askBecause(whyDangerousCode, strings.TrimSpace(found),
		shown(fs))
}
