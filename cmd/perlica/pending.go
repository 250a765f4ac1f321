package main

import "github.com/spf13/cobra"

func (a *app) pendingCommand() *cobra.Command { return &cobra.Command{Use: "pending"} }
