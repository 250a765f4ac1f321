package fact

import "testing"

func TestMoney(t *testing.T) {
	for want, c := range map[string]Cost{
		"1.50 USD": {1.499, "USD"}, "0.01 EUR": {0.0051, "EUR"}, "<0.01 USD": {0.0004, "USD"}, "0.00 USD": {0, "USD"},
		"12 JPY": {12.4, "JPY"}, "<1 JPY": {0.2, "JPY"}, "0.125 KWD": {0.125, "KWD"}, "3.00 credits": {3, "credits"},
	} {
		if got := c.String(); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}
