package flow

import "strings"

// template is a text with expressions between {{ and }}.
type template struct {
	// parts alternate: a text, an expression, a text, and so on.
	texts []string
	exprs []*expression
}

// parseTemplate parses a text. A text without {{ is a template, too.
func parseTemplate(s string) (*template, error) {
	t := &template{}
	for {
		before, rest, ok := strings.Cut(s, "{{")
		t.texts = append(t.texts, before)
		if !ok {
			return t, nil
		}
		n, err := endOfExpression(rest)
		if err != nil {
			return nil, err
		}
		e, err := parseExpression(strings.TrimSpace(rest[:n]))
		if err != nil {
			return nil, err
		}
		t.exprs = append(t.exprs, e)
		s = rest[n+2:]
	}
}

// endOfExpression returns the place of the }} that ends an expression. A }} within a string or an object does not end
// it.
func endOfExpression(s string) (int, error) {
	quote, open := byte(0), 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0 && c == '\\' && quote != '`':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case c == '{':
			open++
		case c == '}' && open > 0:
			open--
		case c == '}' && strings.HasPrefix(s[i:], "}}"):
			return i, nil
		}
	}
	return 0, errTemplateEnd.With(cutText(s))
}

// maxText is the length of the longest text of a step, in bytes.
const maxText = 32 << 20

// render returns the text with the values of its expressions.
func (t *template) render(vars map[string]any) (string, error) {
	var b strings.Builder
	for i, text := range t.texts {
		b.WriteString(text)
		if i < len(t.exprs) {
			v, err := t.exprs[i].evaluate(vars)
			if err != nil {
				return "", err
			}
			s, err := written(v)
			if err != nil {
				return "", &expressionError{t.exprs[i].text, err}
			}
			b.WriteString(s)
		}
		if b.Len() > maxText {
			return "", errLongText.With(maxText >> 20)
		}
	}
	return b.String(), nil
}

// written returns a value as a part of a text. A nil value is an error, because it is a missing value.
func written(v any) (string, error) {
	switch v.(type) {
	case nil:
		return "", errMissing
	case object:
		return "", errStepNoText
	}
	s, err := toString(&evaluation{}, []any{v})
	if err != nil {
		return "", err
	}
	return s.(string), nil
}
