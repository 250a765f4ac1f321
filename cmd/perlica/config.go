package main

import "github.com/spf13/cobra"

func (a *app) configCommand() *cobra.Command { return &cobra.Command{Use: "config"} }
