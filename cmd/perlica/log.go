package main

import "github.com/spf13/cobra"

func (a *app) logCommand() *cobra.Command { return &cobra.Command{Use: "log"} }
