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
		Short: "Ask a model's HTTP API, one request a prompt, without tools",
		Long: `An ACP agent that has no tools: it sends one HTTP request for each prompt and passes on what
the model streams. Nothing is sent twice, whatever fails. 'perlica run --provider NAME' starts
it for a provider with providers.NAME.model.api; see docs/models.md.`,
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
	fl.StringVar(&s.Model, "model", "", "the model, by its maker's `name`")
	fl.StringVar(&s.BaseURL, "base-url", "",
		"the `address` of the API, without the path of its endpoint (default: the maker's)")
	fl.StringVar(&s.Proxy, "proxy", "", "the `address` of a proxy (default: what HTTPS_PROXY and NO_PROXY say)")
	fl.BoolVar(&s.Blind, "no-images", false, "refuse images and PDFs: the model takes text alone")
	fl.StringVar(&key.Env, "key-env", "", "the `variable` of the environment that holds the key")
	fl.StringVar(&key.File, "key-file", "", "the `file` that holds the key, which no one else may read")
	fl.StringVar(&keyCommand, "key-command", "", "the `program` that prints the key and its arguments, as a JSON array")
	fl.StringVar(&options, "options", "", "`members` of the request's body, as a JSON object")
	fl.StringVar(&price, "price", "", "what tokens cost, as a JSON `object`")
	fl.StringVar(&schema, "schema", "", "the JSON `schema` that answers are asked to have")
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
