package main

import "github.com/spf13/cobra"

func (a *app) initCommand() *cobra.Command { return &cobra.Command{Use: "init"} }
