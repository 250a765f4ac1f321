package main

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider/registry"
)

// defaultWindow is the context window assumed of an agent of which nothing is known.
const defaultWindow = 200_000

// budget is how many tokens of history a prompt may carry.
func budget(cfg *config.Config, id string) int {
	window := cfg.ContextWindows[id]
	if window == 0 {
		window = defaultWindow
	}
	return int(float64(window) * cfg.BudgetRatio)
}

// mcpServers is the configuration's list in the protocol's form.
func mcpServers(list []config.MCPServer) []acp.McpServer {
	servers := []acp.McpServer{}
	for _, s := range list {
		switch s.Type {
		case "http":
			servers = append(servers, acp.McpServer{Http: &acp.McpServerHttpInline{Name: s.Name, Type: "http", Url: s.URL, Headers: headers(s.Headers)}})
		case "sse":
			servers = append(servers, acp.McpServer{Sse: &acp.McpServerSseInline{Name: s.Name, Type: "sse", Url: s.URL, Headers: headers(s.Headers)}})
		default:
			env := []acp.EnvVariable{}
			for _, k := range sortedKeys(s.Env) {
				env = append(env, acp.EnvVariable{Name: k, Value: s.Env[k]})
			}
			servers = append(servers, acp.McpServer{Stdio: &acp.McpServerStdio{Name: s.Name, Command: s.Command, Args: append([]string{}, s.Args...), Env: env}})
		}
	}
	return servers
}

func headers(m map[string]string) []acp.HttpHeader {
	list := []acp.HttpHeader{}
	for _, k := range sortedKeys(m) {
		list = append(list, acp.HttpHeader{Name: k, Value: m[k]})
	}
	return list
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// level is a level of the debug trail.
func level(name string) slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(name)); err != nil {
		return slog.LevelInfo // the configuration has checked it
	}
	return l
}

// unknownCommand is what a first word that is no command leads to. It is never a prompt.
func unknownCommand(root *cobra.Command, word string) error {
	err := usageErr("there is no command %q", word)
	if near := nearestCommand(root, word); near != "" {
		return withHint(err, "did you mean 'perlica %s'?", near)
	}
	if strings.ContainsRune(word, ' ') {
		return withHint(err, "to send a text: perlica run %q", word)
	}
	return withHint(err, "to send a text: perlica run …; for the commands: perlica --help")
}

// checkExclusive names the flags that were given although they exclude each other.
func checkExclusive(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		for _, group := range fl.Annotations["cobra_annotation_mutually_exclusive"] {
			var given []string
			for _, name := range strings.Fields(group) {
				if cmd.Flags().Changed(name) {
					given = append(given, "--"+name)
				}
			}
			if len(given) > 1 {
				err = usageErr("%s exclude each other", strings.Join(given, " and "))
			}
		}
	})
	return err
}

// completeRunFlags gives shells the values of the flags of run, as far as a command has them.
func (a *app) completeRunFlags(cmd *cobra.Command) {
	fixed := func(values ...string) cobra.CompletionFunc {
		return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, f := range map[string]cobra.CompletionFunc{
		"permissions":   fixed("ask", "reads", "deny", "allow"),
		"output-format": fixed("text", "json", "stream-json"),
		"provider":      a.completeProviders,
		"session":       a.completeSessions,
	} {
		if cmd.Flags().Lookup(flag) == nil {
			continue // the chat has fewer
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
			panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // a flag that does not exist
		}
	}
}

func (a *app) completeProviders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, k := range registry.All() {
		names = append(names, k.ID+"\t"+k.Name)
	}
	if p, err := a.locate(nil); err == nil {
		for id := range p.cfg.Providers {
			names = append(names, id)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
