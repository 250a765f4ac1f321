package main

import (
	"bytes"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/frame"
)

// describeForShells prepares the tree of commands for completion. It removes the help's formatting from descriptions
// and offers file names only for files.
func describeForShells(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	files := cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	var each func(*cobra.Command)
	each = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			name, usage := pflag.UnquoteUsage(f)
			f.Usage = usage
			if _, has := cmd.GetFlagCompletionFunc(f.Name); !has &&
				slices.Contains([]string{"file", "directory", "text"}, name) {
				frame.CompleteFlag(cmd, f.Name, files)
			}
		})
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
		if cmd.ValidArgsFunction == nil && strings.Contains(cmd.Use, "FILE") {
			cmd.ValidArgsFunction = files
		}
		for _, sub := range cmd.Commands() {
			each(sub)
		}
	}
	each(root)
}

// shells are the shells with completion. Each has instructions for the user.
var shells = []struct {
	name, use string
	write     func(root *cobra.Command, w io.Writer, described bool) error
}{
	{"bash", `For every new shell:

  mkdir -p ~/.local/share/bash-completion/completions
  perlica completion bash > ~/.local/share/bash-completion/completions/perlica

Without the package bash-completion, put this into ~/.bashrc instead:

  . <(perlica completion bash)`, writeBash},
	{"zsh", `For every new shell, if ~/.zshrc calls compinit:

  perlica completion zsh > "${fpath[1]}/_perlica"

If you may not write there, put this into ~/.zshrc, after compinit:

  . <(perlica completion zsh)`, func(root *cobra.Command, w io.Writer, described bool) error {
		if described {
			return root.GenZshCompletion(w)
		}
		return root.GenZshCompletionNoDesc(w)
	}},
	{"fish", `For every new shell:

  mkdir -p ~/.config/fish/completions
  perlica completion fish > ~/.config/fish/completions/perlica.fish`,
		func(root *cobra.Command, w io.Writer, described bool) error {
			return root.GenFishCompletion(w, described)
		}},
	{"powershell", `For every new shell:

  perlica completion powershell >> $PROFILE`, func(root *cobra.Command, w io.Writer, described bool) error {
		if described {
			return root.GenPowerShellCompletionWithDesc(w)
		}
		return root.GenPowerShellCompletion(w)
	}},
}

// completionCommand returns the command that prints the completion scripts.
func completionCommand(a *frame.App) *cobra.Command {
	var list []*cobra.Command
	for _, shell := range shells {
		var plain bool
		cmd := &cobra.Command{
			Use: shell.name, Annotations: frame.ReadOnly.Annotation(),
			Short: "Print the completion script for " + shell.name,
			Long:  "Print the script that lets " + shell.name + " complete command lines of perlica.\n\n" + shell.use,
			Args:  frame.Exactly(), ValidArgsFunction: frame.NoFiles,
			RunE: func(cmd *cobra.Command, _ []string) error {
				var script bytes.Buffer
				if err := shell.write(cmd.Root(), &script, !plain); err != nil {
					return err
				}
				return a.Write(func(w io.Writer) error {
					_, err := w.Write(script.Bytes())
					return err
				})
			},
		}
		cmd.Flags().BoolVar(&plain, "no-descriptions", false, "complete words without showing descriptions")
		list = append(list, cmd)
	}
	return frame.Group("completion", "Print the script that lets your shell complete command lines",
		"Print the script that lets your shell complete commands, flags and names. The help of each\nsubcommand "+
			"tells you where to put the script. See docs/completion.md.", list...)
}

// writeBash writes the script for bash. It does not need the package bash-completion.
func writeBash(root *cobra.Command, w io.Writer, described bool) error {
	var script bytes.Buffer
	if err := root.GenBashCompletionV2(&script, described); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.Replace(script.String(),
		`    _get_comp_words_by_ref "$@" cur prev words cword`+"\n", bareBash, 1))
	return err
}

// bareBash sets the variables cur, prev, words and cword as the function of bash-completion does with -n =: . It
// joins words that bash has split at these characters.
const bareBash = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i j=0 rest=${COMP_LINE} word glued
    words=("${COMP_WORDS[0]}")
    rest=${rest#*"${COMP_WORDS[0]}"}
    cword=0
    for ((i = 1; i < ${#COMP_WORDS[@]}; i++)); do
        word=${COMP_WORDS[i]}
        glued=
        if [[ -n $word && $rest == "$word"* && ( $word == [=:]* || ${words[j]} == *[=:] ) ]]; then
            glued=1
        fi
        if [[ -n $glued ]]; then
            words[j]+=$word
        else
            ((j++))
            words[j]=$word
        fi
        rest=${rest#*"$word"}
        if ((i == COMP_CWORD)); then
            cword=$j
        fi
    done
    cur=${words[cword]}
    prev=${words[cword > 0 ? cword - 1 : 0]}
`
