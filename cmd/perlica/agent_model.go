package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/provider/model"
	"github.com/perlica/perlica/provider/process"
)

func modelCommand(a *frame.App) *cobra.Command {
	var s model.Settings
	var api, options, price, schema string
	var key config.Secret
	var keyCommand string
	cmd := &cobra.Command{
		Use: "model", Annotations: frame.ReadOnly.Annotation(),
		Short: "Send each prompt to a model's HTTP API, once and without tools",
		Long: `An ACP agent without tools. It sends one HTTP request for each prompt and passes on the
model's answer as it arrives. It never sends a request twice, even after a failure.
'perlica run --provider NAME' starts this agent if the configuration has the key
providers.NAME.model.api; see docs/models.md.`,
		Example: `  perlica run --provider anthropic-api --model claude-sonnet-4-5 'Say hello.'
  perlica agent model --api openai-chat --base-url http://127.0.0.1:11434/v1 --model qwen3`,
		Args: frame.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			s.API = model.API(api)
			if options != "" {
				if err := json.Unmarshal([]byte(options), &s.Options); err != nil {
					return frame.UsageErrorf("--options is no JSON object: %v", err)
				}
			}
			if price != "" {
				if err := json.Unmarshal([]byte(price), &s.Price); err != nil {
					return frame.UsageErrorf("--price is no JSON object: %v", err)
				}
			}
			if schema != "" {
				s.Schema = json.RawMessage(schema)
			}
			if err := s.Check(); err != nil {
				// The error takes one line, because a client shows only the last line of an ended agent's output.
				return frame.OneLineError(frame.UsageErrorf("%v; see docs/models.md", err))
			}
			if s.Key, s.KeyFrom, err = readKey(a, key); err == nil && keyCommand != "" {
				s.KeyFrom = "model.key_command, which runs once for each agent process"
				s.AskKey, err = printedKey(keyCommand)
			}
			if err != nil {
				return frame.OneLineError(err)
			}
			return frame.IgnoreClosedPipe(model.Serve(cmd.Context(), a.Stdin, a.Stdout, s))
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&api, "api", "", "the `protocol`: anthropic, openai, openai-chat or gemini")
	fl.StringVar(&s.Model, "model", "", "the model's `name` at its maker")
	fl.StringVar(&s.BaseURL, "base-url", "",
		"the `address` of the API, without the endpoint's path (default: the maker's address)")
	fl.StringVar(&s.Proxy, "proxy", "", "the `address` of a proxy (default: from HTTPS_PROXY and NO_PROXY)")
	fl.BoolVar(&s.Blind, "no-images", false, "refuse images and PDFs, because the model accepts only text")
	fl.StringVar(&key.Env, "key-env", "", "the environment `variable` that holds the API key")
	fl.StringVar(&key.File, "key-file", "", "the `file` that holds the API key; other users must not be able to read it")
	fl.StringVar(&keyCommand, "key-command", "",
		"a JSON array of a `program` and its arguments; the program prints the API key")
	fl.StringVar(&options, "options", "", "a JSON object with further `members` for the request's body")
	fl.StringVar(&price, "price", "", "a JSON `object` with the prices of tokens; see docs/models.md")
	fl.StringVar(&schema, "schema", "", "ask the model for answers that match this JSON `schema`")
	return cmd
}

// readKey returns the model's key and the name of the key's source. A model may have no key.
func readKey(a *frame.App, s config.Secret) (key, from string, err error) {
	switch {
	case s == (config.Secret{}):
		return "", "", nil
	case s.Env != "":
		from = "the variable " + s.Env
	default:
		from = "the file " + s.File
	}
	dirs, err := config.UserDirs(a.Getenv)
	if err != nil {
		return "", "", err
	}
	if key, err = s.Read(dirs, "", a.Getenv); errors.Is(err, config.ErrNoSecret) {
		err = fmt.Errorf("the model's key is missing: %w", err)
	}
	return key, from, err
}

// printedKey parses a JSON array with a program and its arguments. It returns a function that runs the program and
// returns the key that the program prints.
func printedKey(command string) (func(context.Context) (string, error), error) {
	var argv []string
	if err := json.Unmarshal([]byte(command), &argv); err != nil || len(argv) == 0 {
		return nil, frame.UsageErrorf("--key-command is not a JSON array of a program and its arguments")
	}
	return func(ctx context.Context) (string, error) {
		key, err := process.Secret(ctx, argv)
		if err != nil {
			err = fmt.Errorf("the model's key is missing: %w; run the program of model.key_command yourself to see why", err)
		}
		return key, err
	}, nil
}
