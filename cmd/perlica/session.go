package main

import (
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/kernel"
)

func (a *app) completeSessions(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	p, err := a.locate(nil)
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	log, paths, err := a.reader(cmd.Context(), p)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = log.Close() }() // read from only
	view, err := kernel.OpenSessions(cmd.Context(), log, paths.Sessions)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer func() { _ = view.Close() }() // a view
	list, err := view.List(cmd.Context(), false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, s := range list {
		if s.Name != "" {
			names = append(names, s.Name+"\t"+s.Title)
		} else {
			names = append(names, string(s.ID)+"\t"+s.Title)
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) sessionCommand() *cobra.Command { return &cobra.Command{Use: "session"} }
