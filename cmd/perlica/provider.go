package main

import "github.com/spf13/cobra"

func (a *app) providerCommand() *cobra.Command { return &cobra.Command{Use: "provider"} }
